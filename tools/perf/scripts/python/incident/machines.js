// SPDX-License-Identifier: GPL-2.0
//
// The page of several machines on one axis: perf script report incident DUMP DUMP...
//
// All times are in ns since the zero of the axis. The pages of the machines are in this one: as
// their data, in elements page-0, page-1 ..., and as the template that these have in common. When
// a machine is chosen, its page is put together and shown in a frame. That has an origin of its
// own and no more rights than this page. It is told of the selection by a message, in the times
// of its records.
'use strict';

(() => {
const NSEC = 1e9, MOST_BARS = 3, HEIGHT = 36, LEAST = 1000;
const $ = (id) => document.getElementById(id);
const read = (id) => JSON.parse($(id).textContent);
const data = read('data'), placed = data.machines.filter((m) => m.placed);
const view = {all: [0, 1], seen: [0, 1], selected: null, chosen: null};

function button(text, title, click)
{
	const b = element('button', {title}, text);

	b.addEventListener('click', click);
	return b;
}

function signed(ns, digits)
{
	const text = (Math.abs(ns) / NSEC).toFixed(digits);

	return (Number(text) ? ns < 0 ? '−' : '+' : '') + text + ' s';
}

// ---- the axis

const width = () => view.seen[1] - view.seen[0];
const share = (ns) => (ns - view.seen[0]) / width();
const percent = (ns) => 100 * share(ns) + '%';
const digits = () => Math.max(3, Math.min(6, Math.ceil(-Math.log10(width() / NSEC)) + 3));

// Places something that lasts. What is far outside is cut: browsers have a largest size.
function span(e, from, to)
{
	const left = Math.max(share(from), -0.1), right = Math.min(share(to), 1.1);

	e.hidden = right < 0 || left > 1;
	e.style.left = 100 * left + '%';
	e.style.width = 100 * Math.max(right - left, 0) + '%';
}

function drawTicks()
{
	const lane = $('ticks').querySelector('.lane'), most = Math.max(lane.clientWidth / 110, 2);
	let gap = 1e3;

	for (let i = 0; width() / gap > most; i++)
		gap *= i % 3 === 1 ? 2.5 : 2;
	const places = Math.max(0, Math.ceil(-Math.log10(gap / NSEC) - 1e-9));
	const ticks = [];

	for (let at = Math.ceil(view.seen[0] / gap) * gap; at <= view.seen[1]; at += gap) {
		const tick = element('span', {class: 'tick'}, signed(at, places));

		tick.style.left = percent(at);
		ticks.push(tick);
	}
	lane.replaceChildren(...ticks);
}

function drawBusy(canvas, machine)
{
	const ratio = window.devicePixelRatio || 1, room = canvas.clientWidth;
	const c = canvas.getContext('2d'), {values} = machine.busy;
	const style = getComputedStyle(document.documentElement);
	const slice = (machine.end - machine.start) / values.length;

	canvas.width = Math.round(room * ratio);
	canvas.height = HEIGHT * ratio;
	c.setTransform(ratio, 0, 0, ratio, 0, 0);
	values.forEach((value, i) => {
		// Whole pixels, so that there are no seams
		const from = Math.round(Math.max(share(machine.start + i * slice), 0) * room);
		const to = Math.round(Math.min(share(machine.start + (i + 1) * slice), 1) * room);

		if (to <= from || value < 0)
			return;
		c.globalAlpha = 1;
		c.fillStyle = style.getPropertyValue('--panel');
		c.fillRect(from, 0, to - from, HEIGHT);
		c.globalAlpha = value / 100;
		c.fillStyle = style.getPropertyValue('--c0');
		c.fillRect(from, 0, to - from, HEIGHT);
	});
}

// Words are where there is more room: behind a bar, or before it.
function placeWords(words, from, to)
{
	const inside = (ns) => Math.min(Math.max(share(ns), 0), 1);
	const before = inside(from), behind = inside(to);

	if (1 - behind >= before) {
		words.style.left = `calc(${100 * behind}% + 8px)`;
		words.style.right = '0';
	} else {
		words.style.left = '0';
		words.style.right = `calc(${100 * (1 - before)}% + 4px)`;
	}
	words.style.textAlign = 1 - behind >= before ? 'left' : 'right';
}

function showSelection()
{
	const [from, to] = view.selected || view.seen, at = (ns) => signed(ns, digits());

	$('zoom-selection').disabled = !view.selected;
	$('zoom-out').disabled = $('clear').disabled = width() >= view.all[1] - view.all[0];
	$('clear').disabled = $('clear').disabled && !view.selected;
	$('selection').replaceChildren(view.selected ? 'Selected: ' : 'Seen: ',
		element('b', {}, `${at(from)} to ${at(to)}`),
		` (${duration(to - from)}), counted from ` +
		`${data.triggered ? 'the first trigger' : 'the oldest record'}, ${data.zero}. ` +
		(view.selected ? '' : 'Drag to select a part of it.'));
}

const rows = placed.map((machine) => ({
	machine,
	canvas: element('canvas', {title: machine.busy.share ? 'Busy CPUs' :
		'Samples, compared with the busiest time: the event does not sample idle CPUs'}),
	lost: machine.lost.map(() => element('div', {class: 'lost'})),
	error: element('div', {class: 'error'}), trigger: element('div', {class: 'trigger'}),
	selected: element('div', {class: 'selected'}),
	told: [...machine.findings].sort((a, b) => b.cost_ns - a.cost_ns).slice(0, MOST_BARS)
		.map((finding) => ({finding, bar: element('i'),
				    words: element('span', {}, finding.sentence)})),
}));

function drawRow(row)
{
	const {machine} = row, {trigger, error} = machine;

	drawBusy(row.canvas, machine);
	machine.lost.forEach(([from, to], i) => span(row.lost[i], from, to));
	row.trigger.hidden = trigger === null || share(trigger) < 0 || share(trigger) > 1;
	row.trigger.style.left = percent(trigger);
	if (trigger !== null && error !== null)
		span(row.error, trigger - error, trigger + error);
	else
		row.error.hidden = true;
	row.selected.hidden = !view.selected;
	if (view.selected)
		span(row.selected, ...view.selected);
	for (const {finding, bar, words} of row.told) {
		span(bar, finding.from, finding.to);
		bar.parentElement.hidden = bar.hidden;
		placeWords(words, finding.from, finding.to);
	}
}

function draw()
{
	drawTicks();
	rows.forEach(drawRow);
	showSelection();
}

function see(from, to)
{
	const [first, last] = view.all, wide = Math.min(Math.max(to - from, LEAST), last - first);

	from = Math.min(Math.max(from, first), last - wide);
	view.seen = [from, from + wide];
	draw();
}

function zoom(factor)
{
	const [from, to] = view.selected || view.seen, middle = (from + to) / 2;

	see(middle - width() * factor / 2, middle + width() * factor / 2);
}

function select(from, to)
{
	view.selected = from === null ? null : [Math.max(Math.min(from, to), view.all[0]),
						Math.min(Math.max(from, to), view.all[1])];
	rows.forEach((row) => {
		row.selected.hidden = !view.selected;
		if (view.selected)
			span(row.selected, ...view.selected);
	});
	showSelection();
}

// Selects, and hands the selection to the page of the machine
function choose(from, to)
{
	select(from, to);
	handOver();
}

function clear()
{
	choose(null);
	see(...view.all);
}

function moveSelection(forward, resize)
{
	const step = (forward ? 1 : -1) * width() / 20;
	const [from, to] = view.selected ||
		[0.45, 0.55].map((of) => view.seen[0] + of * width());

	if (resize)
		choose(from, Math.max(to + step, from + width() / 1000));
	else
		choose(from + step, to + step);
	if (view.selected[0] < view.seen[0] || view.selected[1] > view.seen[1])
		see(view.seen[0] + step, view.seen[1] + step);
}

const KEYS = {
	ArrowLeft: (shift) => moveSelection(false, shift),
	ArrowRight: (shift) => moveSelection(true, shift),
	'+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2),
	Enter: () => view.selected && see(...view.selected), Escape: clear,
};

function followMouse()
{
	const timeline = $('timeline');
	let start = null, dragged = false;
	const at = (event) => {
		const box = $('ticks').querySelector('.lane').getBoundingClientRect();

		const part = (event.clientX - box.x) / box.width;

		return view.seen[0] + Math.min(Math.max(part, 0), 1) * width();
	};

	timeline.addEventListener('pointerdown', (event) => {
		if (event.button || !event.target.closest('.lane, .told'))
			return;
		start = {x: event.clientX, at: at(event)};
		dragged = false;
	});
	timeline.addEventListener('pointermove', (event) => {
		if (!start || !dragged && Math.abs(event.clientX - start.x) < 4)
			return;
		if (!dragged)
			timeline.setPointerCapture(event.pointerId);
		dragged = true;
		select(start.at, at(event));
	});
	for (const name of ['pointerup', 'pointercancel'])
		timeline.addEventListener(name, () => {
			if (start && dragged)
				handOver();
			start = null;
		});
	// What ends a drag is no click on what lies there.
	timeline.addEventListener('click', (event) => {
		if (dragged) {
			event.stopPropagation();
			event.preventDefault();
		}
		dragged = false;
	}, true);
}

// ---- the page of one machine

function handOver()
{
	const {chosen, selected} = view;

	if (!chosen)
		return;
	if (!chosen.placed || !selected) {
		$('handed').textContent = '';
		$('frame').contentWindow.postMessage({selection: null}, '*');
		return;
	}
	if (selected[1] < chosen.start || selected[0] > chosen.end) {
		$('handed').textContent = 'It has no records of the selected time.';
		return;
	}
	const shift = chosen.base - chosen.start;
	const selection = selected.map((ns) => Math.round(ns + shift));

	$('handed').textContent = 'The selected time is selected below, too.';
	$('frame').contentWindow.postMessage({selection}, '*');
}

function open(machine)
{
	const n = data.machines.indexOf(machine), template = read('template');

	if (view.chosen !== machine) {
		view.chosen = machine;
		$('frame').title = $('h-page').textContent = 'The page of ' + machine.name;
		$('frame').onload = handOver;
		$('frame').srcdoc = [template[0], machine.title, template[1],
				     $('page-' + n).textContent, template[2]].join('');
		[...$('machine-table').querySelectorAll('tbody tr')].forEach((tr, i) =>
			tr.classList.toggle('chosen', i === n));
	} else {
		handOver();
	}
	$('page').hidden = false;
	$('h-page').focus({preventScroll: true});
	$('page').scrollIntoView();
}

function openFinding(machine, finding)
{
	if (machine.placed) {
		select(finding.from, Math.max(finding.to, finding.from + 1));
		if (finding.from < view.seen[0] || finding.to > view.seen[1])
			see(...view.all);
	}
	open(machine);
}

// ---- what does not change

const openButton = (machine) => button(machine.name, 'Open its page', () => open(machine));

function toldOf(machine, {finding, bar, words})
{
	const b = button('', finding.sentence, () => openFinding(machine, finding));

	b.append(bar, words);
	return element('div', {class: 'told'}, b);
}

function laneOf({machine, canvas, lost, error, trigger, selected, told})
{
	canvas.addEventListener('click', () => open(machine));
	return element('div', {class: 'lane'}, canvas, ...told.map((of) => toldOf(machine, of)),
		       ...lost, error, trigger, selected);
}

function showRows()
{
	$('axis-section').hidden = !placed.length;
	$('machines').replaceChildren(...rows.map((row) =>
		element('div', {class: 'machine'}, openButton(row.machine), laneOf(row))));
}

const COLUMNS = [
	['Machine', openButton], ['Kernel', (m) => m.kernel], ['Boot', (m) => m.boot],
	['Window', (m) => m.window],
	['Triggered', (m) => (m.placed ? m.triggered : 'not on the axis')],
	['Clock error', (m) => m.clock], ['Reason', (m) => m.reason], ['File', (m) => m.file],
];

function showTable()
{
	const row = (m) => element('tr', {}, ...COLUMNS.map(([head, get]) =>
		element('td', {'data-head': head}, get(m) || '–')));
	const heads = COLUMNS.map(([head]) => element('th', {}, head));

	$('machine-table').replaceChildren(element('thead', {}, element('tr', {}, ...heads)),
		element('tbody', {}, ...data.machines.map(row)));
}

function showFindings()
{
	const all = data.machines.flatMap((machine) =>
		machine.findings.map((finding) => ({machine, finding})));
	const where = (machine, ns) => (machine.placed ? signed(ns, 3) : 'not on the axis');

	all.sort((a, b) => b.finding.cost_ns - a.finding.cost_ns);
	$('findings').replaceChildren(...all.map(({machine, finding}) => element('li', {},
		button(finding.sentence, 'Open the page of the machine at its time',
		       () => openFinding(machine, finding)),
		element('span', {class: 'of'}, [machine.name, finding.confidence,
			where(machine, finding.from)].join(', ')))));
	if (!all.length)
		$('findings').replaceWith(element('p', {class: 'line', id: 'findings'},
			'Nothing was found that held tasks up.'));
}

function start()
{
	const list = (id, texts) => $(id).replaceChildren(
		...texts.map((text) => element('li', {}, text)));

	list('orders', data.orders);
	list('notes', data.notes);
	if (placed.length) {
		const ends = (m) => [m.start, m.end, m.trigger ?? m.start];
		const all = placed.flatMap(ends), first = Math.min(...all), last = Math.max(...all);
		const beside = Math.max((last - first) / 50, LEAST);

		view.all = view.seen = [first - beside, last + beside];
	}
	showRows();
	showTable();
	showFindings();
	draw();
	followMouse();
	$('timeline').addEventListener('keydown', (event) => {
		if (event.target !== $('timeline') || !Object.hasOwn(KEYS, event.key) ||
		    event.ctrlKey || event.altKey || event.metaKey)
			return;
		event.preventDefault();
		KEYS[event.key](event.shiftKey);
	});
	$('zoom-in').addEventListener('click', () => zoom(0.5));
	$('zoom-out').addEventListener('click', () => zoom(2));
	$('zoom-selection').addEventListener('click', () => view.selected && see(...view.selected));
	$('clear').addEventListener('click', clear);
	$('to-top').addEventListener('click', () => {
		window.scrollTo(0, 0);
		$('timeline').focus({preventScroll: true});
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
	window.addEventListener('resize', draw);
	document.body.dataset.ready = 'yes';
}

start();
})();
