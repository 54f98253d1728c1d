// Preloaded by tests/wall_clock.rs: the wall clock goes back a day as soon as the file $SET_BACK_WHEN is there.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t set_back(void) {
    const char *file = getenv("SET_BACK_WHEN");
    return file != NULL && access(file, F_OK) == 0 ? 86400 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec -= set_back();
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = (int)syscall(SYS_gettimeofday, now, zone);
    if (result == 0 && now != NULL) {
        now->tv_sec -= set_back();
    }
    return result;
}
