// SPDX-License-Identifier: GPL-2.0
//
// Callers and callees of a function, on the page of perf script report incident.
//
// If the text that is searched for is the name of a function, two tables show which functions
// called it, and which ones it called, in the selected part. A call chain counts once for each
// caller and for each callee that it has, also if the function calls itself: no row is more than
// all that the function has. A click on a row goes to its function.
'use strict';

const makeButterfly = (page) => {
const {data, $, chains} = page;
const NONE = -1;

// {total, callers, callees}: values by the number of a function, or NONE
function around(isIt, counted)
{
	const byChain = new Map(), callers = new Map(), callees = new Map();
	const add = (map, key, n) => map.set(key, (map.get(key) || 0) + n);
	let total = 0;

	for (const [pair, value] of counted.pairs)
		add(byChain, pair % counted.nr, value);
	for (const [leaf, value] of byChain) {
		const above = new Set(), below = new Set();
		let callee = NONE;

		for (let chain = leaf; chain > 0; chain = chains.parent[chain]) {
			const frame = chains.frame[chain], caller = chains.parent[chain];

			if (isIt[frame]) {
				above.add(caller > 0 ? chains.frame[caller] : NONE);
				below.add(callee);
			}
			callee = frame;
		}
		if (!above.size)
			continue;
		total += value;
		above.forEach((frame) => add(callers, frame, value));
		below.forEach((frame) => add(callees, frame, value));
	}
	return {total, callers, callees};
}

function fill(id, head, sums, total, none)
{
	const rows = [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 100)
		.map(([frame, value]) => [
			frame === NONE ? none : page.searchButton(data.frames[frame][0]),
			frame === NONE ? '' : page.shortDso(data.dsos[data.frames[frame][1]]),
			page.amount(value), page.share(value, total)]);

	page.fill(id, [[head, 'text wrap'], ['In', 'text'], ['With it'], ['Share']], rows, '');
}

function show(counted)
{
	const name = $('search').value.trim();
	const isIt = data.frames.map(([of]) => of === name);
	const sums = isIt.includes(true) ? around(isIt, counted) : {total: 0};

	$('butterfly').hidden = !sums.total;
	if (!sums.total)
		return;
	$('butterfly-how').replaceChildren(page.element('b', {}, name),
		` has ${page.amount(sums.total)} in this part of the window, ` +
		`${page.share(sums.total, counted.total)} of all. Its callers and callees have these.`);
	fill('callers', 'Called by', sums.callers, sums.total, 'no other function');
	fill('callees', 'Calls', sums.callees, sums.total, 'itself');
}

return {show};
};
