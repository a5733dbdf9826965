import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

import { ENGLISH } from '../src/core/i18n';
import { finding, read } from '../src/lab/errors';
import { completeOptions, magicOf, meant, OPTIONS } from '../src/lab/options';
import { code, functions, unbalanced } from '../src/lab/python';
import { check } from '../src/lab/static';

const GOOD = `%%cute_attention --H 16 --Sq 8192 --target sm_90a --param window=1024 --out local
window = 512  # it's (a comment

def mask_mod(b, h, q_idx, kv_idx):
    """if q_idx and ( are only words here"""
    return (q_idx >= kv_idx) & (q_idx - kv_idx < window)
`;
const body = (lines: string, head = 'score_mod(score, b, h, q_idx, kv_idx)'): string => `%%cute_attention\ndef ${head}:\n${lines}`;

/** The text after a fix's edits. */
function applied(text: string, fix: { edits: { line: number; column: number; end_line: number; end_column: number; text: string }[] }): string {
  const at = (line: number, column: number): number => text.split('\n').slice(0, line - 1).reduce((sum, row) => sum + row.length + 1, 0) + column;
  return [...fix.edits].reverse().reduce((now, edit) => now.slice(0, at(edit.line, edit.column)) + edit.text + now.slice(at(edit.end_line, edit.end_column)), text);
}

test('a good cell, and text that is no cell of ours, have nothing to say', () => {
  expect(check(GOOD, ENGLISH)).toEqual([]);
  expect(check('x = (', ENGLISH)).toEqual([]);
  expect(check('%%cute_attentions --foo', ENGLISH)).toEqual([]);
  expect(check('%%cute_attention --help\n', ENGLISH)).toEqual([]);
});

test.each([
  ['%%cute_attention --heads 8\nscore_mod = f', 'unknown option --heads (did you mean --H?)', 1, 17, 24],
  ['%%cute_attention --tarjet sm_90a\nscore_mod = f', 'unknown option --tarjet (did you mean --target?)', 1, 17, 25],
  ['%%cute_attention --colour red\nscore_mod = f', 'unknown option --colour', 1, 17, 25],
  ['%%cute_attention\nx = 1\n', 'no score_mod and no mask_mod is defined', 1, 0, 16],
  [body('    return score', 'score_mod(score, q_idx, kv_idx)'), 'score_mod takes (score, b, h, q_idx, kv_idx), this function takes 3 parameters', 2, 14, 34],
  [body('    if q_idx >= kv_idx:\n        return score\n    return score - 1.0\n'), "a Python `if` on `q_idx` can't be lowered", 3, 4, 22],
  [body('    return q_idx >= kv_idx and h > 2', 'mask_mod(b, h, q_idx, kv_idx)'), "a Python `and` on `q_idx` can't be lowered", 3, 27, 30],
  [body('    return not q_idx > kv_idx', 'mask_mod(b, h, q_idx, kv_idx)'), "a Python `not` on `q_idx` can't be lowered", 3, 11, 14],
  [body('    return (score * 2'), "'(' is never closed", 3, 11, 12],
  ['%%cute_gemm --whatever\ndef epilogue(acc):\n    return [acc)', "')' does not fit the bracket that is open here", 3, 15, 16]
])('%#: %s', (text, message, line, column, end) => {
  const [first, ...others] = check(text, ENGLISH);
  expect(others).toEqual([]);
  expect(first?.message.split('\n')[0]).toBe(message);
  expect(first).toMatchObject({ line, column, end_line: line, end_column: end, severity: 'error', source: 'static' });
});

test.each([
  ['%%cute_attention --heads 8\nscore_mod = f', '%%cute_attention --H 8\nscore_mod = f'],
  [body('    return score', 'score_mod(score, q_idx)'), body('    return score')],
  [body('    if q_idx >= kv_idx:\n        return score\n    return score - 1.0\n'), body('    return torch.where(q_idx >= kv_idx, score, score - 1.0)\n')],
  [body('    if h > 2:\n        return score\n    else:\n        return -score'), body('    return torch.where(h > 2, score, -score)')],
  [body('    return score if q_idx > kv_idx else -score'), body('    return torch.where(q_idx > kv_idx, score, -score)')],
  [body('    return q_idx >= kv_idx and (h > 2)', 'mask_mod(b, h, q_idx, kv_idx)'), body('    return (q_idx >= kv_idx) & (h > 2)', 'mask_mod(b, h, q_idx, kv_idx)')],
  [body('    return not q_idx > kv_idx', 'mask_mod(b, h, q_idx, kv_idx)'), body('    return ~(q_idx > kv_idx)', 'mask_mod(b, h, q_idx, kv_idx)')]
])('%#: the fix leaves nothing to say', (text, fixed) => {
  const fix = check(text, ENGLISH)[0]?.fixes[0];
  expect(fix && applied(text, fix)).toBe(fixed);
  expect(check(fixed, ENGLISH)).toEqual([]);
});

test('a cell without a function can be given one', () => {
  const text = '%%cute_attention\nx = 1\n';
  const fix = check(text, ENGLISH)[0]?.fixes[0];
  expect(check(applied(text, fix!), ENGLISH)).toEqual([]);
});

test('Python that only looks like a branch on an index', () => {
  const lines = ['    limit = 3 if FAST else 4', '    rows = [x for x in (1, 2) if x > 1]', '    text = "q_idx and kv_idx"  # not q_idx', '    if scale is None:', '        return score', '    return score'];
  expect(check(body(lines.join('\n')), ENGLISH)).toEqual([]);
  expect(check(body('    if bias is not None and q_idx is not None:\n        return score\n    return score'), ENGLISH)).toEqual([]);
});

test('strings and comments are no code', () => {
  expect(code('a = "(" # (\nb = f\'\'\'[\n[\'\'\' + (1)')).toBe('a =        \nb =      \n     + (1)');
  expect(unbalanced(code("print('it\\'s (', \"'\")"))).toBeNull();
  expect(functions('def f(a, b=(1, 2)):\n    return a\nx = 1')[0]).toMatchObject({ name: 'f', parameters: ['a', 'b=(1, 2)'] });
});

test('the options are those of cute_lab/options.py', () => {
  const source = readFileSync(resolve(__dirname, '../../cute_lab/options.py'), 'utf8');
  const table = source.slice(source.indexOf('\nOPTIONS = {'), source.indexOf('\nSYNONYMS'));
  const flags = [...table.matchAll(/(?:Option\(\s*|^ {4})"(--[\w-]+)"/gm)].map(found => found[1]);
  expect(OPTIONS.map(option => option.flag).sort()).toEqual([...flags].sort());
  expect(meant('--num_heads')).toBe('--H');
  expect(meant('--xyzzy')).toBeNull();
  expect(magicOf('%%cute_attention')).toBe('cute_attention');
});

test('completion of the magic line', () => {
  expect(completeOptions('%%cute_attention --ta')).toMatchObject({ from: 17, matches: [{ text: '--target' }] });
  expect(completeOptions('%%cute_attention --target sm_90a,sm_1')?.matches.map(match => match.text)).toEqual(['sm_100a', 'sm_103a', 'sm_120a']);
  expect(completeOptions('%%cute_attention --H 8 --')?.matches.map(match => match.text)).not.toContain('--H');
  expect(completeOptions('def f(')).toBeNull();
  expect(completeOptions('%%cute_attention --H', '%%cute_attention --H --Hkv 2')?.matches.map(match => match.text)).toEqual(['--H']);
  expect(completeOptions('%%cute_attention --target sm_9')?.matches).toEqual([{ text: 'sm_90a', type: 'value', detail: 'Hopper' }]);
  expect(completeOptions('%%cute_attention --dtype ')?.matches.map(match => match.detail)).toEqual(['of q, k and v', 'of q, k and v']);
  expect(completeOptions('%%cute_attention --H 8')?.matches).toEqual([]);
});

const TRACEBACK = `CuteLabError: a Python \`if\` on an index can't be lowered              \u001b[31mcell line 3, columns 8-22\u001b[0m
    3 |     if 😀q_idx >= kv_idx:
      |        ^^^^^^^^^^^^^^^
  The condition has a different value in every cell.
  Write
      return torch.where(c, a, b)`;

test('an error below a cell becomes a finding, as long as the line is the one that failed', () => {
  const error = read(TRACEBACK)!;
  expect(error).toMatchObject({ line: 3, column: 8, endColumn: 22, message: "a Python `if` on an index can't be lowered\nThe condition has a different value in every cell." });
  expect(error.hint).toBe('return torch.where(c, a, b)');
  const cell = '%%cute_attention\ndef f():\n    if 😀q_idx >= kv_idx:\n';
  expect(finding(error, cell)).toMatchObject({ line: 3, column: 7, end_column: 23 }); // the emoji is two units of UTF-16
  expect(finding(error, cell.replace('>=', '>'))).toBeNull();
  expect(read('NameError: x')).toBeNull();
  expect(read('CuteLabError: too long\n  at cell line 2\n    2 | abc\n      | ^^^')).toMatchObject({ line: 2, column: 1, endColumn: 3 });
  expect(read('CuteLabError: no GPU\n  There is none.')).toBeNull();
});
