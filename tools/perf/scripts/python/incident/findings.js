// SPDX-License-Identifier: GPL-2.0
//
// Findings of the page of perf script report incident: what perf verdict found, with its evidence.
//
// A click on a finding, or on the time of a link of its chain, selects that time. A click on a task
// shows that task alone, and marks its lane. A click on a stack shows it in the flame graph of that
// task and time. perf verdict tells no stacks. They are looked up in what the page holds: the call
// chain of the wait that overlaps most with the link or, of a task that ran, the one with most
// samples.
'use strict';

const makeFindings = (page, lanes) => {
const {data, $, element, chains, cells, off} = page;
// Roots of links whose task ran; others waited.
const ON_CPU = ['ran', 'cpu', 'shared'];
const byTid = new Map();

data.taskNames.forEach(([, tid], task) => {
	if (!byTid.has(tid))
		byTid.set(tid, []);
	byTid.get(tid).push(task);
});

const tasksOf = ({tid}) => byTid.get(tid) || [];

// The number of a task; undefined if it is counted with others
function numberOf(told)
{
	const found = tasksOf(told);

	return found.find((task) => data.taskNames[task][2] === told.comm) ?? found[0];
}

// The links of each task
function linksOf(links)
{
	const of = new Map();

	for (const link of links)
		for (const task of tasksOf(link.task))
			of.set(task, [...of.get(task) || [], link]);
	return of;
}

// Map of link -> {view, task, chain}, of those that waited
function findWaits(links)
{
	const linked = linksOf(links), found = new Map(), most = new Map();

	for (let i = 0; i < off.task.length; i++)
		for (const link of linked.get(off.task[i]) || []) {
			const from = Math.max(off.start[i] * data.tick, link.start - data.start);
			const inside = Math.min(off.end[i] * data.tick, link.end - data.start) - from;

			if (inside <= (most.get(link) || 0))
				continue;
			most.set(link, inside);
			found.set(link, {view: 'off', task: off.task[i], chain: off.chain[i]});
		}
	return found;
}

// The same, of those that ran
function findRuns(links)
{
	const linked = linksOf(links), found = new Map(), sums = new Map();
	const bin = (ns) => Math.floor((ns - data.start) / data.bin);

	for (let i = 0; i < cells.task.length; i++)
		for (const link of linked.get(cells.task[i]) || []) {
			const {task, chain, event} = cells;

			if (!data.shownEvents.includes(event[i]) || cells.bin[i] < bin(link.start) ||
			    cells.bin[i] > bin(link.end))
				continue;
			const chainsOf = sums.get(link) || sums.set(link, new Map()).get(link);
			const n = (chainsOf.get(chain[i]) || 0) + cells.count[i];

			chainsOf.set(chain[i], n);
			if (n <= (chainsOf.get('most') || 0))
				continue;
			chainsOf.set('most', n);
			found.set(link, {view: page.usualView(), task: task[i], chain: chain[i]});
		}
	return found;
}

function findStacks(findings)
{
	const links = findings.flatMap((finding) => finding.chain);
	const ran = (link) => ON_CPU.includes(link.root);

	return new Map([...findWaits(links.filter((link) => !ran(link))), ...findRuns(links.filter(ran))]);
}

// Its functions, root first
function functionsOf(chain)
{
	const names = [];

	for (; chain > 0; chain = chains.parent[chain])
		names.unshift(data.frames[chains.frame[chain]][0]);
	return names;
}

function button(title, text, click)
{
	const b = element('button', {title}, text);

	b.addEventListener('click', click);
	return b;
}

const timeButton = (text, from, to) => button('Select its time', text, () => {
	page.selectTime(from, to);
	$('timeline').scrollIntoView({block: 'nearest'});
});

function showTask(task)
{
	page.showOnly('comm', page.commOf[task]);
	page.showOnly('cgroup', -1);
	page.changed();
	$(lanes.mark(task) ? 'states' : 'timeline').scrollIntoView({block: 'nearest'});
}

const nameOf = ({comm, tid}) => `${comm} (${tid})`;

function taskButton(told)
{
	const task = numberOf(told);

	if (task === undefined)
		return nameOf(told);
	return button('Show this task alone, and its lane', nameOf(told), () => showTask(task));
}

function showStack({view, task, chain}, from, to)
{
	page.showOnly('comm', page.commOf[task]);
	page.showOnly('cgroup', -1);
	page.setView(view);
	page.zoomFlame(page.commOf[task], chain);
	page.selectTime(from, to);
	$('h-flame').scrollIntoView();
}

function stackButton(stack, link)
{
	const names = functionsOf(stack.chain);

	return button('Show it in the flame graph: ' + names.join(' → '), 'stack',
		      () => showStack(stack, link.start, link.end));
}

// Each link is a task that held up the one above. Its text begins with the name of the task.
function showLink(link, depth, stack)
{
	const name = nameOf(link.task), named = link.text.startsWith(name);

	const more = [timeButton(page.signed(link.start - page.base, page.digits), link.start, link.end)];

	if (stack)
		more.push(stackButton(stack, link));
	if (link.function)
		more.push(page.searchButton(link.function));
	return element('li', {style: `padding-left: ${Math.min(depth, 5) * 14}px`}, depth ? '↳ ' : '',
		...(named ? [taskButton(link.task), link.text.slice(name.length)] : [link.text]),
		...more.flatMap((b) => [' · ', b]));
}

function showTasks(words, tasks)
{
	const each = tasks.flatMap((task) => [', ', taskButton(task),
					      task.ns ? ' ' + page.duration(task.ns) : '']);

	return tasks.length ? [element('li', {}, words, ...each.slice(1))] : [];
}

function showFinding(finding, stacks)
{
	return element('li', {},
		timeButton(finding.sentence, finding.from, finding.to),
		element('span', {class: 'sure'}, finding.confidence),
		element('ul', {}, ...showTasks('Held up: ', finding.victims),
			...showTasks('By: ', finding.culprits),
			...(finding.containers || []).map((text) => element('li', {}, text))),
		element('ul', {}, ...finding.chain.map((link, depth) =>
			showLink(link, depth, stacks.get(link)))));
}

function show()
{
	const verdict = data.verdict;

	$('verdict').hidden = !verdict.findings;
	if (!verdict.findings)
		return;
	const stacks = findStacks(verdict.findings);

	$('findings').replaceChildren(...verdict.findings.map((finding) => showFinding(finding, stacks)));
	if (!verdict.findings.length)
		$('findings').replaceWith(element('p', {class: 'line', id: 'findings'},
			'Nothing was found that held tasks up.'));
	$('missing').hidden = !verdict.missing.length;
	$('missing').querySelector('ul').replaceChildren(...verdict.missing.map((missing) =>
		element('li', {}, `${missing.what}: record it with `,
			element('code', {}, missing.events))));
}

return {show};
};
