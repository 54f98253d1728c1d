// A quoted figure is the figure of a committed result.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { documents, withFigures } from './document.mjs'

for (const document of documents) {
  test(`the figures in ${document} are those of the results`, () => {
    const text = readFileSync(new URL(`../${document}`, import.meta.url), 'utf8')
    assert.ok(text.includes('<!-- figures: end -->'), 'no block would be checked')
    assert.equal(text, withFigures(text))
  })
}

test('a changed figure and an unknown result are found', () => {
  const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const changed = text.replace(/\| 0\.\d\d \|/, '| 9.99 |')
  assert.notEqual(changed, text)
  assert.notEqual(withFigures(changed), changed)
  assert.throws(() => withFigures('<!-- figures: none -->\n<!-- figures: end -->'), /no result of the name none/)
})
