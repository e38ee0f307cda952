// SPDX-License-Identifier: GPL-2.0
//
// Comparison of the page of perf script report incident: the selected part with calm parts.
//
// The rules are those of perf verdict --compare. Calm parts are as long as the selected part; there
// are at least 5, else nothing is claimed. A figure has changed if it is above the highest or below
// the lowest value of a calm part by more than their spread and a minimum: for samples three times
// the square root of the highest value, for times 2 % of the part. For samples it must also differ
// from the median by 5 samples and 1 % of all.
//
// A kept part may be shorter than that. It is cut into 5 slices then, and figures of the selected
// part are scaled to the length of a slice, which has the more noise of the two. What is shown is
// scaled back.
'use strict';

const makeCompare = (page) => {
const {data, $, element, part, view} = page;
const NONE = 'Nothing changed by more than calm parts differ.';
const LEAST_PARTS = 5, MOST_PARTS = 48, MOST_ROWS = 40;
const told = data.verdict.comparison && data.verdict.comparison.compared ?
	data.verdict.comparison : null;
const binOf = (ns) => Math.round((ns - data.start) / data.bin);
const compare = {mode: '', kept: null, calm: [], scale: 1, sums: null};

// Parts of n bins in ranges
function split(ranges, n)
{
	const parts = [];

	for (const [from, to] of ranges)
		for (let at = from; at + n <= to; at += n)
			parts.push([at, at + n]);
	const every = Math.max(parts.length / MOST_PARTS, 1);

	return parts.filter((_, i) => Math.floor(i / every) !== Math.floor((i - 1) / every));
}

// What every CPU has records of; before, a part is not calm but empty.
const since = () => Math.max(0, ...data.cpus.map((c) => (c.oldest === null ? 0 : binOf(c.oldest) + 1))
	.filter((bin) => bin < page.bins / 2));

// The window ends with the trigger, which may be later than the last record.
const until = () => Math.min(page.bins, binOf(data.newest));

function calmParts([from, to])
{
	if (compare.mode === 'chosen')
		return told.calm.map((p) => [binOf(p.from), binOf(p.to)]);
	const ranges = compare.mode === 'kept' ? [compare.kept] : [[since(), until()]];
	const without = ranges.flatMap(([a, b]) => [[a, Math.min(b, from)], [Math.max(a, to), b]]);

	const parts = split(without, to - from);

	return compare.mode !== 'kept' || parts.length >= LEAST_PARTS ? parts : slices(compare.kept);
}

const lengthOf = ([from, to]) => to - from;

// They do not depend on what is selected: it may be the kept part itself.
function slices([from, to])
{
	const length = Math.floor((to - from) / LEAST_PARTS);

	return length ? split([[from, to]], length) : [];
}

// {changed: 1 more, -1 less, 0 not; median, least, most} of a value and those of calm parts
function judge(now, values, all)
{
	const was = judgeScaled(now * compare.scale, values, all * compare.scale);

	for (const figure of ['median', 'least', 'most'])
		was[figure] /= compare.scale;
	return was;
}

function judgeScaled(now, values, all)
{
	const sorted = Float64Array.from(values).sort(), least = sorted[0], most = sorted.at(-1);
	const median = sorted[sorted.length >> 1], spread = most - least;
	const times = view.kind !== 'event';
	const minimum = times ? 0.02 * all : 3 * Math.sqrt(most + 1);
	let changed = now > most + spread + minimum ? 1 : now < least - spread - minimum ? -1 : 0;

	if (!times && Math.abs(now - median) < Math.max(5, all / 100))
		changed = 0;
	return {changed, median, least, most};
}

// Names that differ in a number at the end are one, as for perf verdict.
const groupOf = new Map(), groups = [], stems = [];
const group = page.comms.map((comm) => {
	const name = comm && comm[0] + comm.slice(1).replace(/[-0-9_/:#.]+$/, '');

	if (!groupOf.has(name)) {
		groupOf.set(name, groups.length);
		groups.push(name === comm ? comm : name + '*');
		stems.push(name);
	}
	return groupOf.get(name);
});

function figures(counted)
{
	const {own, total} = page.functionSums(counted.pairs, counted.nr);
	const tasks = new Float64Array(groups.length);

	for (const [pair, value] of counted.pairs)
		tasks[group[page.commOf[Math.floor(pair / counted.nr)]]] += value;
	return {own, total, tasks};
}

// Of the selected part with calm parts: what it takes to judge any figure; null: it is off
function begin(counted)
{
	const selected = page.selected();

	compare.sums = null;
	if (!compare.mode)
		return null;
	compare.calm = calmParts(selected);
	compare.scale = 1;
	if (compare.calm.length >= LEAST_PARTS) {
		const parts = compare.calm.map(([from, to]) => page.count(from, to));

		if (compare.mode === 'kept')
			compare.scale = lengthOf(compare.calm[0]) / lengthOf(selected);
		compare.sums = {now: figures(counted), parts, of: parts.map(figures),
				all: view.kind === 'event' ? counted.total
					: (selected[1] - selected[0]) * data.bin};
	}
	return compare.sums;
}

// Nodes of the flame graph, by (task name, chain), get what they were in calm parts.
function judgeNodes(nodes)
{
	const {parts, all} = compare.sums;
	const values = new Map(nodes.map((node) => [node.key, new Float64Array(parts.length)]));

	parts.forEach((counted, n) => {
		for (const [pair, value] of counted.pairs) {
			const comm = page.commOf[Math.floor(pair / counted.nr)];

			for (let chain = pair % counted.nr; chain >= 0; chain = page.chains.parent[chain]) {
				const of = values.get(comm * counted.nr + chain);

				if (of)
					of[n] += value;
			}
		}
	});
	for (const node of nodes)
		node.was = judge(node.v, values.get(node.key), all);
}

// More is red, less is blue, and what is not claimed is grey.
function colour(node)
{
	const {changed, median} = node.was || {changed: 0};
	const far = changed ? Math.min(Math.abs(node.v - median) / (compare.sums.all / 4 || 1), 1) : 0;

	if (!changed)
		return 'hsl(215 8% 78%)';
	return `hsl(${changed > 0 ? 6 : 212} 85% ${Math.round(80 - 22 * far)}%)`;
}

function label(node)
{
	const was = node.was;

	if (!was)
		return '';
	return `; in calm parts ${page.amount(was.median)} (${page.amount(was.least)} to ` +
		`${page.amount(was.most)}): ` +
		(was.changed ? was.changed > 0 ? 'more' : 'less' : 'not more than calm parts differ');
}

function changes(names, figure, says)
{
	const {now, of, all} = compare.sums;

	return names.map((_, i) => ({i, figure, says, now: now[figure][i],
				     was: judge(now[figure][i], of.map((f) => f[figure][i]), all)}))
		.filter((row) => row.was.changed)
		.sort((a, b) => Math.abs(b.now - b.was.median) - Math.abs(a.now - a.was.median));
}

// Short, so that a narrow window has room for all columns
const brief = (n) => (view.kind === 'event' ? page.number(n) : page.duration(n));
const values = (row) => [row.now, row.was.median, row.was.least, row.was.most].map(brief);
const HEADS = [['Now'], ['Calm'], ['Least'], ['Most']];

function showTables()
{
	const tasks = changes(groups, 'tasks', '');
	const functions = [...changes(data.frames, 'own', 'self'), ...changes(data.frames, 'total', 'total')]
		.sort((a, b) => Math.abs(b.now - b.was.median) - Math.abs(a.now - a.was.median));

	page.fill('changed-tasks', [['Task', 'text wrap'], ...HEADS], tasks.slice(0, MOST_ROWS)
		.map((row) => [page.searchButton(stems[row.i]), ...values(row)]), NONE);
	page.fill('changed-functions', [['Function', 'text wrap'], ['In', 'text'], ['Of', 'text'], ...HEADS],
		  functions.slice(0, MOST_ROWS).map((row) => [page.searchButton(data.frames[row.i][0]),
			page.shortDso(data.dsos[data.frames[row.i][1]]), row.says, ...values(row)]), NONE);
}

const spanOf = ([from, to]) => page.duration((to - from) * data.bin);

function whyNot()
{
	const nr = compare.calm.length;

	if (!part.selection && compare.mode !== 'chosen')
		return 'Select the part that is to be compared.';
	if (compare.mode === 'kept')
		return 'Nothing is compared: the kept part is too short. Keep a longer one.';
	return `Nothing is compared: it takes ${LEAST_PARTS} calm parts as long as the selected one ` +
		`(${spanOf(page.selected())}), and there ${nr === 1 ? 'is' : 'are'} ${nr}. ` +
		'Select a shorter part.';
}

function how()
{
	const length = spanOf(page.selected()), nr = compare.calm.length;
	const calm = compare.scale === 1 ? `${nr} calm parts as long as it` :
		`${nr} slices of ${spanOf(compare.calm[0])} of the kept part, scaled to ${length}`;

	return `The selected ${length}, with ${calm}. In the flame graph, red is more and blue is ` +
		'less than in each of them, by more than they differ from each other; grey is not.' +
		(view.kind === 'event' ? ' The tables have numbers of samples.' : '');
}

function show()
{
	$('compared').hidden = !compare.mode;
	if (!compare.mode)
		return;
	$('compared-tables').hidden = !compare.sums;
	$('compared-how').textContent = compare.sums ? how() : whyNot();
	if (compare.sums)
		showTables();
}

function setMode(mode)
{
	compare.mode = mode;
	$('compare').value = mode;
	if (mode === 'chosen')
		page.selectTime(told.part.from, told.part.to);
}

// Another part was selected: what perf verdict chose does not fit it.
function selectionChanged()
{
	const [from, to] = part.selection || [0, page.bins];

	if (compare.mode === 'chosen' && (Math.abs(from - binOf(told.part.from)) > 1 ||
					  Math.abs(to - binOf(told.part.to)) > 1)) {
		compare.mode = 'rest';
		$('compare').value = 'rest';
	}
}

function keep()
{
	if (!part.selection)
		return;
	setKept([...part.selection]);
	page.changed();
}

// kept: [from, to), or null
function setKept(kept)
{
	compare.kept = kept;
	[...$('compare').options].find((o) => o.value === 'kept').disabled = !kept;
	$('keep').textContent = !kept ? 'Keep part' : 'Kept ' + kept.map((bin) =>
		page.signed(page.timeOf(bin), page.digits)).join(' to ');
}

// What a link says
function follow(mode, kept)
{
	const usable = [...$('compare').options].filter((o) => kept || o.value !== 'kept');

	setKept(kept);
	setMode(usable.some((o) => o.value === mode) ? mode : '');
}

// ---- what perf verdict found

const FIGURES = {self: 'Samples of the function itself', total: 'Samples with what it called',
		 on_cpu: 'Ran', runnable: 'Waited for a CPU', off_cpu: 'Waited for something else'};

function showTold()
{
	const comparison = data.verdict.comparison;

	$('changes').hidden = !comparison;
	if (!comparison)
		return;
	const changed = told && told.changes.length, none = told && !changed ? ' ' + NONE : '';

	$('changes-how').textContent = comparison.sentence + none;
	$('show-changes').hidden = !told;
	$('changes-rows').hidden = !changed;
	if (!told)
		return;
	const samples = (c) => c.figure === 'self' || c.figure === 'total';
	const amount = (c, n) => (samples(c) ? page.number(n) : page.duration(n));

	page.fill('change-table', [['What', 'text wrap'], ['Figure', 'text'], ...HEADS],
		  told.changes.filter((c, i, all) => all.slice(0, i).filter((o) =>
			o.figure === c.figure).length < 10).map((c) => [
			page.searchButton(samples(c) ? c.function || '[unknown]' : c.comm),
			FIGURES[c.figure], ...['now', 'median', 'least', 'most'].map((k) => amount(c, c[k]))]), NONE);
	$('show-changes').addEventListener('click', () => {
		setMode('chosen');
		page.changed();
		$('h-flame').scrollIntoView();
	});
}

function start()
{
	const options = [['', 'nothing'], ['rest', 'the rest of the window'], ['kept', 'the kept part']];

	if (told)
		options.push(['chosen', 'what was calm before']);
	$('compare').replaceChildren(...options.map(([value, text]) =>
		element('option', value === 'kept' ? {value, disabled: ''} : {value}, text)));
	$('compare').addEventListener('change', () => {
		setMode($('compare').value);
		page.changed();
	});
	$('keep').addEventListener('click', keep);
	showTold();
}

return {start, begin, judgeNodes, colour, label, show, follow, selectionChanged,
	mode: () => compare.mode, kept: () => compare.kept, sums: () => compare.sums};
};
