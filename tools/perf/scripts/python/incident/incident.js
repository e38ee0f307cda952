// SPDX-License-Identifier: GPL-2.0
//
// The page of perf script report incident.
//
// The data consists of cells, (bin, CPU, event, task, chain) -> samples, sorted by bin, and of
// waits. When a part of the window is selected, its values are computed from them. Nothing is
// drawn per sample. Bins are numbered from the first record on; a part is [from, to) in bins.
//
//	Data		the decoded arrays, and indices
//	count()		the samples or the times of a part, by task and chain
//	Timeline	the visible part, the selected part, the canvas
//	Flame		the tree of a count, drawn by d3-flame-graph if it is available
//	lanes.js	what tasks did, and histograms of their waits
//	compare.js	the selected part compared with calm ones
//	butterfly.js	callers and callees of the function that is searched for
//	findings.js	what perf verdict found, and its evidence
//	Tables		top tasks and functions of a count, and tables of the whole window
'use strict';

(() => {
const NSEC = 1e9;
const COLOURS = 8, MOST_FRAMES = 4000, MOST_SIDE = 32000, MOST_PIXELS = 4e7, FRAME_HEIGHT = 19;
const KERNEL = 1, STATE = 2;
const $ = (id) => document.getElementById(id);
const data = JSON.parse($('data').textContent);

const TYPES = {B: Uint8Array, H: Uint16Array, I: Uint32Array, i: Int32Array, d: Float64Array};

// A column of numbers; one of zeros has none.
function unpack(column)
{
	if (column.zeros !== undefined)
		return new Uint8Array(column.zeros);
	const raw = atob(column.text), bytes = new Uint8Array(raw.length);

	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return new TYPES[column.type](bytes.buffer);
}

const unpackAll = (o) => Object.fromEntries(Object.entries(o).filter(([, c]) => !Array.isArray(c))
	.map(([key, column]) => [key, unpack(column)]));
const cells = unpackAll(data.cells), off = unpackAll(data.off);
const switches = unpackAll(data.switches), chains = unpackAll(data.chains);
const bins = Math.floor(data.width / data.bin) + 1;

const comms = [], commOf = [];
{
	const index = new Map();

	for (const [, , comm] of data.taskNames) {
		if (!index.has(comm)) {
			index.set(comm, comms.length);
			comms.push(comm);
		}
		commOf.push(index.get(comm));
	}
}
const isIdle = (task) => data.taskNames[task][1] === 0;
// A clock that samples an idle CPU found nobody on it; other events have happened there.
const leftOut = (event, task) => isIdle(task) && data.events[event].kind === 'clock';
// Kernel threads that wait for work hold nobody up.
const forWork = (chain) => {
	const [name, , kind] = data.frames[chains.frame[chain]];

	return kind === STATE && name === '(waiting for work)';
};

// The first cell of a bin, or of the next one that has any.
function firstCell(bin)
{
	let low = 0, high = cells.bin.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (cells.bin[middle] < bin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Cells and switches of each CPU, in the order of time.
function byCpu(cpus)
{
	const lists = new Map(data.cpus.map((c) => [c.cpu, []]));

	cpus.forEach((cpu, i) => lists.get(cpu).push(i));
	return lists;
}
const cellsOf = byCpu(cells.cpu), switchesOf = byCpu(switches.cpu);
const marksOf = new Map(data.cpus.map((c) => [c.cpu, []]));

for (const mark of data.marks)
	marksOf.get(mark[1]).push(mark);

// ---- words

const number = (n) => Math.round(n).toLocaleString('en-US');
const share = (part, all) => (all ? (100 * part / all).toFixed(2) : '0.00') + ' %';
const base = data.trigger === null ? data.start : data.trigger;

function signed(ns, digits)
{
	const text = (Math.abs(ns) / NSEC).toFixed(digits);

	if (!Number(text))
		return '0 s';
	return (ns < 0 ? '−' : data.trigger === null ? '' : '+') + text + ' s';
}

// So many that two bins differ.
const digits = Math.min(Math.max(Math.ceil(-Math.log10(data.bin / NSEC)), 3), 6);
const cpuName = (cpu) => (cpu < 0 ? '?' : String(cpu));
const timeOf = (bin) => data.start - base + bin * data.bin;

// ---- counting

// Events as a mask; the clock of a hybrid machine is more than one.
const mask = (events) => data.events.map((_, i) => events.includes(i));
// comm and cgroup: what is shown alone, or -1
const view = {kind: 'event', events: mask(data.shownEvents), comm: -1, cgroup: -1};
const passes = (task, cgroup) => (view.comm < 0 || commOf[task] === view.comm) &&
	(view.cgroup < 0 || cgroup === view.cgroup);
const viewed = () => data.events.filter((_, i) => view.events[i]).map((e) => e.name).join(' + ');

function add(map, key, n)
{
	map.set(key, (map.get(key) || 0) + n);
}

// How long the task of a wait could run in a part of it: at its end, or, if it is a sum of short
// ones, anywhere.
function ready(i, start, end, inside)
{
	const whole = Math.abs(off.time[i] / data.tick - (off.end[i] - off.start[i])) < 2;

	if (!whole)
		return off.ready[i] * Math.min(inside, 1);
	const from = off.end[i] - off.ready[i] / data.tick;

	return Math.max(0, Math.min(off.end[i], end) - Math.max(from, start)) * data.tick;
}

// {pairs: Map of task * chains + chain -> value, total, idle} of a part of the window; idle is
// not in the others.
function count(from, to)
{
	const pairs = new Map(), nr = chains.parent.length;
	let total = 0, idle = 0;

	if (view.kind !== 'event') {
		const scale = data.bin / data.tick, start = from * scale, end = to * scale;

		for (let i = 0; i < off.start.length && off.start[i] < end; i++) {
			const length = off.end[i] - off.start[i];
			const inside = Math.min(off.end[i], end) - Math.max(off.start[i], start);

			if (inside <= 0 || !length || !passes(off.task[i], off.cgroup[i]))
				continue;
			const value = view.kind === 'off' ? off.time[i] * Math.min(inside / length, 1)
				: ready(i, start, end, inside / length);

			if (!value)
				continue;
			if (view.kind === 'off' && forWork(off.chain[i])) {
				idle += value;
				continue;
			}
			add(pairs, off.task[i] * nr + off.chain[i], value);
			total += value;
		}
	} else {
		for (let i = firstCell(from), end = firstCell(to); i < end; i++) {
			if (!view.events[cells.event[i]] || !passes(cells.task[i], cells.cgroup[i]))
				continue;
			if (leftOut(cells.event[i], cells.task[i])) {
				idle += cells.count[i];
				continue;
			}
			add(pairs, cells.task[i] * nr + cells.chain[i], cells.count[i]);
			total += cells.count[i];
		}
	}
	return {pairs, total, idle, nr};
}

const amount = (n) => (view.kind !== 'event' ? duration(n) : number(n) + ' samples');

// ---- timeline

// The tasks with most samples have colours; the idle one is the gap that others leave.
let ranking = [];
const colourOf = new Uint8Array(comms.length);

function rank()
{
	const sums = new Map();

	for (let i = 0; i < cells.bin.length; i++)
		if (view.events[cells.event[i]] && !isIdle(cells.task[i]))
			add(sums, commOf[cells.task[i]], cells.count[i]);
	ranking = [...sums].sort((a, b) => b[1] - a[1]).map(([comm]) => comm);
	colourOf.fill(COLOURS);
	ranking.slice(0, COLOURS).forEach((comm, i) => { colourOf[comm] = i; });
}

// What is seen and selected, in bins; the row of the CPU that the keys are at.
const part = {from: 0, to: bins, selection: null, row: -1};
const selected = () => part.selection || [0, bins];
const AXIS = 34;
// The layout while a part is dragged: to ask for it after each step would make the browser do it.
let fixed = null;
// For the names of tasks, where there is room
const margin = () => (fixed ? fixed.margin : window.innerWidth < 700 ? 64 : 132);
let scheme = {};

function readScheme()
{
	const style = getComputedStyle(document.documentElement);
	const get = (name) => style.getPropertyValue(name).trim();

	scheme = {font: '12px ' + getComputedStyle(document.body).fontFamily};
	for (const name of ['back', 'panel', 'text', 'quiet', 'rule', 'accent', 'trigger', 'lost',
			    'throttled', 'switches', 'gap', 'shade', 'other', 'ran', 'runnable',
			    'blocked', 'slept'])
		scheme[name] = get('--' + name);
	scheme.tasks = [...Array(COLOURS).keys()].map((i) => get('--c' + i));
	scheme.tasks.push(scheme.other);
	scheme.states = [scheme.ran, scheme.runnable, scheme.blocked, scheme.slept];
}

function rowHeight()
{
	const nr = data.cpus.length;

	return nr <= 4 ? 60 : nr <= 12 ? 36 : nr <= 32 ? 24 : 14;
}

// A column is so wide that some samples fall into each, else nothing but noise is seen.
function columnWidth()
{
	const seen = (firstCell(part.to) - firstCell(part.from)) / data.cpus.length;

	return Math.max(2, Math.min(Math.ceil(4 * plotWidth() / Math.max(seen, 1)), 8));
}

// Beside the scroll bar, where there is one.
const plotWidth = () => (fixed ? fixed.width : Math.max($('rows').clientWidth - margin() - 8, 50));
const toX = (bin) => margin() + (bin - part.from) / (part.to - part.from) * plotWidth();
const toBin = (x) => part.from + (x - margin()) / plotWidth() * (part.to - part.from);

function prepare(canvas, width, height)
{
	// Browsers draw nothing on a canvas that is larger.
	const ratio = Math.min(window.devicePixelRatio || 1, MOST_SIDE / height,
			       Math.sqrt(MOST_PIXELS / width / height));
	const context = canvas.getContext('2d');

	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = width + 'px';
	canvas.style.height = height + 'px';
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	context.font = scheme.font;
	return context;
}

function step(span, most)
{
	for (let e = -6; e < 6; e++)
		for (const m of [1, 2, 5])
			if (span / (m * 10 ** e) <= most)
				return [m * 10 ** e, Math.max(0, -e)];
	return [span, 0];
}

function drawAxis()
{
	const width = $('timeline').clientWidth, c = prepare($('axis'), width, AXIS);
	const first = timeOf(part.from) / NSEC, last = timeOf(part.to) / NSEC;
	const [gap, places] = step(last - first, Math.max(plotWidth() / 110, 2));

	c.fillStyle = scheme.panel;
	c.fillRect(0, 0, width, AXIS);
	c.fillStyle = scheme.quiet;
	c.textAlign = 'center';
	for (let i = Math.ceil(first / gap); i * gap <= last; i++) {
		const x = toX((i * gap * NSEC - timeOf(0)) / data.bin);
		const text = signed(i * gap * NSEC, places), half = c.measureText(text).width / 2;

		c.fillRect(x, AXIS - 6, 1, 6);
		if (x - half > margin() - 20 && x + half < width)
			c.fillText(text, x, AXIS - 10);
	}
	if (data.trigger !== null) {
		const x = toX((data.trigger - data.start) / data.bin);

		if (x >= margin() && x <= width) {
			c.fillStyle = scheme.trigger;
			c.fillRect(x - 1, AXIS - 6, 2, 6);
			c.textAlign = x > width - 60 ? 'right' : 'center';
			c.fillText('trigger', x, 11);
		}
	}
}

// How many samples of each colour each column of a CPU has.
function columns(cpu, width, wide)
{
	const sums = new Float32Array(width * (COLOURS + 1));
	const scale = plotWidth() / wide / (part.to - part.from);

	for (const i of cellsOf.get(cpu)) {
		const bin = cells.bin[i];

		if (bin < part.from || bin >= part.to || !view.events[cells.event[i]] ||
		    isIdle(cells.task[i]) || !passes(cells.task[i], cells.cgroup[i]))
			continue;
		const x = Math.min(Math.floor((bin - part.from) * scale), width - 1);

		sums[x * (COLOURS + 1) + colourOf[commOf[cells.task[i]]]] += cells.count[i];
	}
	return sums;
}

function density(cpu, width, wide)
{
	const sums = new Float32Array(width), scale = plotWidth() / wide / (part.to - part.from);

	for (const i of switchesOf.get(cpu)) {
		const bin = switches.bin[i];

		if (bin >= part.from && bin < part.to)
			sums[Math.min(Math.floor((bin - part.from) * scale), width - 1)] +=
				switches.count[i];
	}
	return sums;
}

function hatch(c, x, y, width, height)
{
	c.save();
	c.beginPath();
	c.rect(x, y, width, height);
	c.clip();
	c.strokeStyle = scheme.gap;
	c.globalAlpha = 0.7;
	for (let i = x - height; i < x + width + height; i += 6) {
		c.beginPath();
		c.moveTo(i, y + height);
		c.lineTo(i + height, y);
		c.stroke();
	}
	c.restore();
}

function drawRow(c, wide, y, height, sums, most, many)
{
	const band = data.hasSwitches ? 4 : 0, room = height - band - 5;

	for (let x = 0; x * (COLOURS + 1) < sums.length; x++) {
		let top = y + 2 + room;

		for (let i = 0; i <= COLOURS; i++) {
			const n = sums[x * (COLOURS + 1) + i];

			if (!n)
				continue;
			const size = Math.max(n / most * room, 0.5);

			c.fillStyle = scheme.tasks[i];
			c.fillRect(margin() + wide * x, top - size, wide, size);
			top -= size;
		}
	}
	c.fillStyle = scheme.switches;
	many.counts.forEach((n, x) => {
		if (n) {
			c.globalAlpha = 0.25 + 0.75 * n / many.most;
			c.fillRect(margin() + wide * x, y + height - band - 2, wide, band);
		}
	});
	c.globalAlpha = 1;
}

function drawMarks(c, cpu, y, height)
{
	const oldest = cpu.oldest === null ? bins : (cpu.oldest - data.start) / data.bin;
	const x = Math.min(toX(oldest), margin() + plotWidth()), left = Math.max(toX(0), margin());

	if (x - left > 1)
		hatch(c, left, y + 2, x - left, height - 4);
	if (cpu.given_up && x >= margin()) {
		c.fillStyle = scheme.gap;
		c.fillRect(x, y + 1, 4, height - 2);
	}
	for (const [kind, , time, n, since] of marksOf.get(cpu.cpu)) {
		const at = toX(time / data.bin), from = Math.max(toX(since / data.bin), margin());
		const to = Math.min(at, margin() + plotWidth());

		if (to - from > 1)
			hatch(c, from, y + 2, to - from, height - 4);
		if (at < margin() || at > margin() + plotWidth())
			continue;
		c.fillStyle = kind === 'lost' ? scheme.lost : scheme.throttled;
		c.fillRect(at - 1, y + 1, n > 1 ? 3 : 2, height - 2);
	}
}

function drawCpus()
{
	const width = $('rows').clientWidth, height = rowHeight();
	const c = prepare($('cpus'), width, height * data.cpus.length);
	const wide = columnWidth(), nr = Math.ceil(plotWidth() / wide);
	const all = data.cpus.map((cpu) => columns(cpu.cpu, nr, wide));
	const many = data.cpus.map((cpu) => density(cpu.cpu, nr, wide));
	let most = 1, mostSwitches = 1;

	for (const sums of all)
		for (let x = 0; x < sums.length; x += COLOURS + 1) {
			let n = 0;

			for (let i = 0; i <= COLOURS; i++)
				n += sums[x + i];
			most = Math.max(most, n);
		}
	for (const counts of many)
		mostSwitches = counts.reduce((a, n) => Math.max(a, n), mostSwitches);
	data.cpus.forEach((cpu, i) => {
		const y = i * height;

		c.fillStyle = scheme.rule;
		c.fillRect(0, y, width, 1);
		c.fillStyle = i === part.row ? scheme.accent : scheme.quiet;
		c.textAlign = 'right';
		c.textBaseline = 'middle';
		c.fillText((i === part.row ? '▸ ' : '') + 'CPU ' + cpuName(cpu.cpu), margin() - 10, y + height / 2);
		drawRow(c, wide, y, height, all[i], most, {counts: many[i], most: mostSwitches});
		drawMarks(c, cpu, y, height);
	});
	drawTrigger(c, height * data.cpus.length);
	drawShade();
}

function drawTrigger(c, height)
{
	if (data.trigger === null)
		return;
	const x = toX((data.trigger - data.start) / data.bin);

	if (x >= margin() && x <= margin() + plotWidth() + 1) {
		c.fillStyle = scheme.trigger;
		c.fillRect(x - 1, 0, 2, height);
	}
}

// What is not selected is shaded by elements over the canvases, so that a step of a drag draws
// nothing.
function drawShade()
{
	const right = margin() + plotWidth(), clamp = (x) => Math.min(Math.max(x, margin()), right);
	const [from, to] = (part.selection || [0, 0]).map((bin) => clamp(toX(bin)));

	for (const [id, left, width] of [['before', margin(), from - margin()], ['behind', to, right - to]])
		for (const place of ['cpus', 'lanes']) {
			const shade = $(`${place}-${id}`);

			shade.hidden = !part.selection;
			shade.style.left = left + 'px';
			shade.style.width = width + 'px';
			shade.style.height = $(place).style.height;
		}
}

function drawTimeline()
{
	drawAxis();
	drawCpus();
	$('zoom-out').disabled = part.from === 0 && part.to === bins;
	$('zoom-in').disabled = part.to - part.from <= 20;
	$('zoom-selection').disabled = !part.selection;
	$('clear').disabled = !part.selection && part.from === 0 && part.to === bins;
}

// All that follows the selection. While it is dragged, the part that is selected is shown for each
// frame, and what is counted from it when the pointer rests.
const REST_MS = 120;
let pending = 0, resting = 0;

function changed()
{
	clearTimeout(resting);
	resting = 0;
	if (!pending)
		pending = requestAnimationFrame(() => {
			pending = 0;
			drawTimeline();
			lanes.draw();
			showCount();
			updateLink();
		});
}

function dragged()
{
	drawShade();
	showSelection();
	clearTimeout(resting);
	resting = setTimeout(changed, REST_MS);
}

function select(from, to, dragging)
{
	from = Math.max(0, Math.min(Math.floor(from), bins - 1));
	to = Math.max(from + 1, Math.min(Math.ceil(to), bins));
	part.selection = from === 0 && to === bins ? null : [from, to];
	compare.selectionChanged();
	if (dragging)
		dragged();
	else
		changed();
}

function see(from, to)
{
	const span = Math.min(Math.max(to - from, 10), bins);

	part.from = Math.round(Math.max(0, Math.min(from, bins - span)));
	part.to = Math.min(part.from + Math.ceil(span), bins);
	drawTimeline();
	lanes.draw();
	updateLink();
}

function zoom(factor, around)
{
	const span = (part.to - part.from) * factor;
	const at = (around - part.from) / (part.to - part.from);

	see(around - span * at, around + span * (1 - at));
}

const middle = () => (part.selection ? (part.selection[0] + part.selection[1]) / 2
				     : (part.from + part.to) / 2);

function whole()
{
	part.selection = null;
	part.from = 0;
	part.to = bins;
	changed();
}

function moveSelection(key, resize)
{
	const seen = part.to - part.from, one = Math.max(seen / 50, 1);
	const by = key === 'ArrowLeft' ? -one : one;
	let [from, to] = part.selection || [part.to - Math.max(Math.round(seen / 10), 1), part.to];

	if (!part.selection && key === 'ArrowLeft' && !resize)
		return selectSeen(from, to);
	if (resize)
		return selectSeen(from, Math.max(to + by, from + 1));
	const length = to - from;

	from = Math.min(Math.max(Math.round(from + by), 0), bins - length);
	if (key === 'Home')
		from = 0;
	else if (key === 'End')
		from = bins - length;
	selectSeen(from, from + length);
}

// What is seen follows what the keys select.
function selectSeen(from, to)
{
	const seen = part.to - part.from;

	select(from, to);
	if (from < part.from || to - from > seen)
		see(from, from + seen);
	else if (to > part.to)
		see(to - seen, to);
}

// The next CPU, and in words what is seen of it.
function moveRow(by)
{
	part.row = Math.max(0, Math.min(part.row + by, data.cpus.length - 1));
	drawTimeline();
	const top = part.row * rowHeight(), rows = $('rows');

	rows.scrollTop = Math.min(Math.max(rows.scrollTop, top + rowHeight() - rows.clientHeight), top);
	const [from, to] = part.selection || [part.from, part.to];

	$('hover').textContent = data.cpus.length ? describe(data.cpus[part.row], from, to - from) : '';
}

function timelineKey(event, moveRow)
{
	const keys = {
		ArrowLeft: () => moveSelection('ArrowLeft', event.shiftKey),
		ArrowRight: () => moveSelection('ArrowRight', event.shiftKey),
		ArrowUp: () => moveRow(-1),
		ArrowDown: () => moveRow(1),
		Home: () => moveSelection('Home', false),
		End: () => moveSelection('End', false),
		'+': () => zoom(0.5, middle()),
		'=': () => zoom(0.5, middle()),
		'-': () => zoom(2, middle()),
		Enter: () => part.selection && see(...part.selection),
		Escape: whole,
	};

	if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
		keys[event.key]();
		event.preventDefault();
	}
}

// The column that the pointer is at
function describeAt(event)
{
	const bin = Math.floor(toBin(event.offsetX)), row = Math.floor(event.offsetY / rowHeight());

	if (!data.cpus[row] || bin < part.from || bin >= part.to)
		return '\u00a0';
	return describe(data.cpus[row], bin,
			Math.max((part.to - part.from) / plotWidth() * columnWidth(), 1));
}

// A CPU in some bins, in words
function describe(cpu, bin, wide)
{
	const inside = (b) => b >= bin && b < bin + wide, sums = new Map();
	let total = 0, many = 0;

	for (const i of cellsOf.get(cpu.cpu))
		if (inside(cells.bin[i]) && view.events[cells.event[i]] &&
		    passes(cells.task[i], cells.cgroup[i])) {
			add(sums, comms[commOf[cells.task[i]]], cells.count[i]);
			total += cells.count[i];
		}
	for (const i of switchesOf.get(cpu.cpu))
		many += inside(switches.bin[i]) ? switches.count[i] : 0;
	const lost = marksOf.get(cpu.cpu).find(([kind, , time, , since]) => kind === 'lost' &&
		since < (bin + wide) * data.bin && time >= bin * data.bin);
	const who = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 3)
		.map(([comm, n]) => comm + ' ' + share(n, total)).join(', ');

	return `CPU ${cpuName(cpu.cpu)} at ${signed(timeOf(bin), digits)}: ` +
		(total ? `${number(total)} samples: ${who}` : 'no samples') +
		(data.hasSwitches ? `; ${number(many)} switches` : '') +
		(lost ? `; ${number(lost[3])} records were lost in ${duration(lost[2] - lost[4])}` : '');
}

function followMouse()
{
	let from = null;

	for (const canvas of [$('cpus'), $('axis'), $('lanes')]) {
		const line = canvas === $('lanes') ? $('lane-hover') : $('hover');
		const focus = canvas === $('lanes') ? $('states-view') : $('timeline');

		canvas.addEventListener('pointerdown', (event) => {
			if (event.button !== 0)
				return;
			fixed = {margin: margin(), width: plotWidth(),
				 left: canvas.getBoundingClientRect().left};
			from = toBin(event.clientX - fixed.left);
			canvas.setPointerCapture(event.pointerId);
			// The keys go on from here; the ring is for those who came with them.
			focus.classList.add('pointed');
			focus.focus({preventScroll: true});
		});
		canvas.addEventListener('pointermove', (event) => {
			if (from !== null) {
				const to = toBin(event.clientX - fixed.left);

				if (Math.abs(toX(to) - toX(from)) > 3)
					select(Math.min(from, to), Math.max(from, to), true);
			} else if (canvas !== $('axis')) {
				line.textContent = canvas === $('lanes') ? lanes.describeAt(event)
					: describeAt(event);
			}
		});
		const end = () => {
			from = fixed = null;
			if (resting)
				changed();
		};

		canvas.addEventListener('pointerup', end);
		canvas.addEventListener('pointercancel', end);
		canvas.addEventListener('pointerleave', () => { line.textContent = '\u00a0'; });
		canvas.addEventListener('dblclick', () => part.selection && see(...part.selection));
		canvas.addEventListener('wheel', (event) => {
			if (!event.ctrlKey)
				return;
			event.preventDefault();
			zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, toBin(event.offsetX));
		}, {passive: false});
	}
}

function showLegend()
{
	const item = (style, text, kind) => element('li', {},
		element('i', {class: kind || '', style}), text);
	const items = ranking.slice(0, COLOURS).map((comm, i) =>
		item(`background: var(--c${i})`, comms[comm]));

	if (ranking.length > COLOURS)
		items.push(item('background: var(--other)', 'other tasks'));
	if (data.taskNames.some((task) => task[1] === 0))
		items.push(item('border: 1px solid var(--rule)', 'idle'));
	if (data.hasSwitches)
		items.push(item('background: var(--switches); height: 4px; vertical-align: 3px',
				'switches'));
	if (data.trigger !== null)
		items.push(item('background: var(--trigger)', 'trigger', 'line-mark'));
	for (const kind of ['lost', 'throttled'])
		if (data.marks.some((mark) => mark[0] === kind))
			items.push(item(`background: var(--${kind})`,
				kind === 'lost' ? 'records lost' : 'throttled', 'line-mark'));
	if (data.cpus.some((cpu) => cpu.given_up))
		items.push(item('background: var(--gap)', 'given up while read', 'line-mark'));
	if (data.cpus.some((cpu) => cpu.oldest === null ||
			   (cpu.oldest - data.start) > data.width / 500) ||
	    data.marks.some(([, , time, , since]) => time - since > data.width / 500))
		items.push(item('', 'no records', 'hatch'));
	$('legend').replaceChildren(...items);
}

// ---- flame graph

// zoom: the key of the frame that is shown alone, or null
const flame = {chart: null, node: null, zoom: null};

// One tree for all tasks of a name: {n: name, v: value, c: children, k: kind, d: dso}.
function tree(counted)
{
	const tops = new Map(), root = {n: 'all', v: counted.total, c: [], k: STATE, d: ''};
	const least = counted.total / (plotWidth() * 3), all = [];

	for (const [pair, value] of counted.pairs) {
		const comm = commOf[Math.floor(pair / counted.nr)];
		let totals = tops.get(comm);

		if (!totals)
			tops.set(comm, totals = new Map());
		for (let chain = pair % counted.nr; chain >= 0; chain = chains.parent[chain])
			add(totals, chain, value);
	}
	for (const [comm, totals] of tops) {
		// A parent has a smaller number than its children.
		const nodes = new Map([...totals].filter(([, v]) => v >= least)
			.sort((a, b) => a[0] - b[0])
			.map(([chain, v]) => [chain, {v, c: [], k: STATE, d: '',
						      key: comm * counted.nr + chain}]));

		for (const [chain, node] of nodes) {
			if (chain === 0) {
				node.n = comms[comm];
				root.c.push(node);
				continue;
			}
			const [name, dso, kind] = data.frames[chains.frame[chain]];

			Object.assign(node, {n: name, k: kind, d: data.dsos[dso]});
			nodes.get(chains.parent[chain]).c.push(node);
		}
		all.push(...nodes.values());
	}
	if (compare.sums())
		compare.judgeNodes(all);
	return root;
}

function hash(text)
{
	let n = 0;

	for (let i = 0; i < text.length; i++)
		n = (n * 31 + text.charCodeAt(i)) >>> 0;
	return n;
}

// Kernel orange, user green to blue, tasks and states grey; what matches is magenta.
function colour(d)
{
	const h = hash(d.data.n);

	if (d.highlight)
		return '#ef6fe3';
	if (compare.sums())
		return compare.colour(d.data);
	if (d.data.k === STATE)
		return `hsl(215 14% ${72 + h % 10}%)`;
	if (d.data.k === KERNEL)
		return `hsl(${22 + h % 22} 88% ${64 + (h >> 5) % 12}%)`;
	return `hsl(${150 + h % 55} 48% ${62 + (h >> 6) % 14}%)`;
}

const label = (d) => `${d.data.n}${d.data.d ? ` (${d.data.d})` : ''}: ` +
	`${amount(d.data.v)}, ${share(d.data.v, flame.total)}` +
	(compare.sums() ? compare.label(d.data) : '');

// So wide that not more than some thousand frames are drawn, however many there are.
function leastWidth(root, width)
{
	const drawn = new Uint32Array(64), rest = [root];

	for (let node = rest.pop(); node; node = rest.pop()) {
		drawn[Math.min(Math.floor(node.v / root.v * width), 63)]++;
		rest.push(...node.c);
	}
	let frames = 0, least = 63;

	while (least > 1 && frames + drawn[least] < MOST_FRAMES)
		frames += drawn[least--];
	return least;
}

// In place of a title element in each frame: what a frame is stands in the line above.
function tip()
{
}
tip.show = tip.hide = tip.destroy = () => {};

function drawFlame(counted)
{
	const place = $('flame');

	flame.total = counted.total;
	flame.node = null;
	flame.chart = null;
	$('frame').textContent = '\u00a0';
	place.replaceChildren();
	$('reset-flame').disabled = true;
	if (!counted.total) {
		place.append(element('p', {class: 'empty'}, emptyText()));
		return;
	}
	if (typeof d3 === 'undefined' || typeof flamegraph === 'undefined') {
		place.append(element('p', {class: 'empty'}, 'There is no flame graph: this perf ' +
			'was built without d3 and d3-flame-graph, because npm or the network was not ' +
			'available. Install npm and build perf again. The rest of this page works.'));
		return;
	}
	const root = tree(counted), width = place.clientWidth;

	flame.chart = flamegraph().width(width).cellHeight(FRAME_HEIGHT).inverted(true).tooltip(tip)
		.minFrameSize(leastWidth(root, width)).transitionDuration(0).setLabelHandler(label)
		.setColorMapper(colour).setSearchMatch(matches).setSearchHandler(() => {})
		.sort((a, b) => b.data.v - a.data.v)
		.onHover((d) => { $('frame').textContent = label(d); })
		.onClick((d) => {
			flame.node = d;
			flame.zoom = d.parent ? d.data.key : null;
			$('reset-flame').disabled = !d.parent;
			$('frame').textContent = label(d);
			updateLink();
		});
	d3.select(place).datum(root).call(flame.chart);
	// The height is for the deepest frame that is drawn; there is a title that is not used.
	place.querySelector('text.title')?.remove();
	zoomAgain(place);
}

const zoomFlame = (comm, chain) => { flame.zoom = comm * chains.parent.length + chain; };

// The frame that was shown alone, if it is there; else the nearest of its callers
function zoomAgain(place)
{
	const nr = chains.parent.length, frames = new Map();
	let found;

	if (flame.zoom === null)
		return;
	d3.select(place).datum().each((d) => frames.set(d.data.key, d));
	for (let chain = flame.zoom % nr; chain >= 0 && !found; chain = chains.parent[chain])
		found = frames.get(flame.zoom - flame.zoom % nr + chain);
	flame.zoom = null;
	if (!found)
		return;
	flame.chart.zoomTo(found);
	place.scrollTop = (found.depth + 1) * FRAME_HEIGHT - place.clientHeight;
}

const words = () => $('search').value.trim().toLowerCase();
const matches = (d) => words() !== '' && d.data.n.toLowerCase().includes(words());

function emptyText()
{
	if (!data.events.length)
		return 'There are no samples.';
	if (view.kind === 'off')
		return 'No task is known to have waited in this part of the window.';
	if (view.kind === 'queue')
		return 'No task is known to have waited for a CPU in this part of the window.';
	if (shown.idle)
		return 'All CPUs were idle in this part of the window.';
	return `No samples of ${viewed()} in this part of the window.`;
}

function idleText(counted)
{
	if (!counted.idle)
		return '';
	return view.kind === 'off'
		? `, without ${duration(counted.idle)} in which kernel threads waited for work`
		: `, without ${number(counted.idle)} of idle CPUs`;
}

// The share of all whose chain or task matches, drawn or not.
function search()
{
	const text = words(), counted = shown;
	let sum = 0;

	if (flame.chart)
		text ? flame.chart.search(text) : flame.chart.clear();
	if (!text || !counted.total) {
		$('matched').textContent = counted.total ? 'In all ' + amount(counted.total) +
			(view.kind === 'off' ? ' of waiting' : view.kind === 'queue' ?
				' of waiting for a CPU' : ' of ' + viewed()) + idleText(counted)
			: '\u00a0';
		return showTables();
	}
	const frames = data.frames.map(([name]) => name.toLowerCase().includes(text));
	const found = new Uint8Array(chains.parent.length);
	const tasks = comms.map((comm) => comm.toLowerCase().includes(text));

	for (let i = 1; i < found.length; i++)
		found[i] = frames[chains.frame[i]] || found[chains.parent[i]] ? 1 : 0;
	for (const [pair, value] of counted.pairs)
		if (found[pair % counted.nr] || tasks[commOf[Math.floor(pair / counted.nr)]])
			sum += value;
	$('matched').replaceChildren('“' + text + '” is in ', element('b', {}, amount(sum)),
		` of ${amount(counted.total)}, ${share(sum, counted.total)}`);
	showTables();
}

function focusFrame(node)
{
	flame.node = node;
	d3.select('#flame').selectAll('g.frame').classed('focus', (d) => d === node);
	$('frame').textContent = label(node);
	d3.select('#flame').selectAll('g.frame').filter((d) => d === node).node()
		?.scrollIntoView({block: 'nearest'});
}

function flameKey(event)
{
	const root = d3.select('#flame').datum(), node = flame.node || root;
	const next = (by) => {
		const all = node.parent ? node.parent.children.filter((d) => d.value) : [node];

		return all[all.indexOf(node) + by] || node;
	};
	const keys = {
		ArrowDown: () => (node.children || []).find((d) => d.value) || node,
		ArrowUp: () => node.parent || node,
		ArrowLeft: () => next(-1),
		ArrowRight: () => next(1),
		Enter: () => { flame.chart.zoomTo(node); return node; },
		' ': () => { flame.chart.zoomTo(node); return node; },
		Escape: () => { flame.chart.resetZoom(); return root; },
	};

	if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
		focusFrame(keys[event.key]());
		event.preventDefault();
	}
}

// ---- tables

function fill(id, heads, rows, empty)
{
	const cell = (value, i) => {
		const [head, kind] = heads[i];

		return element('td', {class: kind || '', 'data-head': head},
			value instanceof Node ? value : String(value));
	};
	const body = rows.length ? rows.map((row) => element('tr', {}, ...row.map(cell)))
		: [element('tr', {}, element('td', {class: 'empty text', colspan: heads.length}, empty))];

	// Who has come to a button with the keyboard stays there.
	const had = $(id).contains(document.activeElement) ? document.activeElement.textContent : null;

	$(id).replaceChildren(
		element('thead', {}, element('tr', {}, ...heads.map(([text, kind]) =>
			element('th', {class: kind || '', scope: 'col'}, text)))),
		element('tbody', {}, ...body));
	if (had !== null)
		[...$(id).querySelectorAll('button')].find((b) => b.textContent === had)?.focus();
}

function searchButton(text)
{
	const b = element('button', {title: 'Search for it'}, text);

	b.addEventListener('click', () => {
		$('search').value = text;
		search();
		updateLink();
	});
	return b;
}

const shortDso = (dso) => element('span', {class: 'dso', title: dso}, dso.slice(dso.lastIndexOf('/') + 1));

function showTasks(counted)
{
	const sums = new Map();

	for (const [pair, value] of counted.pairs)
		add(sums, Math.floor(pair / counted.nr), value);
	const rows = [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 100)
		.map(([task, value]) => {
			const [pid, tid, comm] = data.taskNames[task];

			return [searchButton(comm), tid < 0 ? '' : tid, pid < 0 ? '' : pid,
				view.kind !== 'event' ? duration(value) : number(value),
				share(value, counted.total)];
		});

	fill('tasks', [['Task', 'text'], ['TID'], ['PID'],
		       [view.kind !== 'event' ? 'Waited' : 'Samples'], ['Share']], rows, emptyText());
}

// Of each function, by its number: its own, and with those that it called
function functionSums(pairs, nr)
{
	const own = new Float64Array(data.frames.length), total = new Float64Array(data.frames.length);
	const seen = new Int32Array(data.frames.length).fill(-1), byChain = new Map();

	for (const [pair, value] of pairs)
		add(byChain, pair % nr, value);
	for (const [leaf, value] of byChain) {
		if (leaf)
			own[chains.frame[leaf]] += value;
		for (let chain = leaf; chain > 0; chain = chains.parent[chain]) {
			const frame = chains.frame[chain];

			if (seen[frame] !== leaf) {
				seen[frame] = leaf;
				total[frame] += value;
			}
		}
	}
	return {own, total};
}

function showFunctions(counted)
{
	const text = words();
	// A name that is a task's, and no function's, asks for the functions of the task.
	const named = data.frames.map(([name]) => name.toLowerCase().includes(text));
	const tasks = comms.map((comm) => comm.toLowerCase().includes(text));
	const ofTasks = text && !named.includes(true) && tasks.includes(true);

	const {own, total} = functionSums(!ofTasks ? counted.pairs : [...counted.pairs].filter(
		([pair]) => tasks[commOf[Math.floor(pair / counted.nr)]]), counted.nr);
	const rows = [...own.keys()].filter((i) => total[i] && (ofTasks || named[i]))
		.sort((a, b) => own[b] - own[a] || total[b] - total[a]).slice(0, 100)
		.map((i) => [searchButton(data.frames[i][0]), shortDso(data.dsos[data.frames[i][1]]),
			     share(own[i], counted.total), share(total[i], counted.total)]);

	fill('functions', [['Function', 'text wrap'], ['In', 'text'], ['Self'], ['Total']],
	     rows, text && counted.total ? `No function here has “${text}” in its name.` : emptyText());
}

let shown = {pairs: new Map(), total: 0, idle: 0, nr: 1};

function showTables()
{
	showTasks(shown);
	showFunctions(shown);
	butterfly.show(shown);
}

function showSelection()
{
	const [from, to] = selected();
	const words_ = part.selection ? 'Selected: ' : 'All of the window: ';

	$('keep').disabled = !part.selection;
	$('selection').replaceChildren(words_,
		element('b', {}, `${signed(timeOf(from), digits)} to ${signed(timeOf(Math.min(to,
			data.width / data.bin)), digits)}`),
		` (${duration(Math.min((to - from) * data.bin, data.width))})` +
		(data.trigger === null ? '' : ', counted from the trigger') +
		(part.selection || !data.events.length ? '' : '. Drag to select a part of it.'));
}

function showCount()
{
	shown = count(...selected());
	compare.begin(shown);
	showSelection();
	lanes.showDelays();
	compare.show();
	drawFlame(shown);
	search();
}

// A time of the records, selected and in sight
function selectTime(from, to)
{
	const bin = (ns) => (ns - data.start) / data.bin;

	selectSeen(Math.max(bin(from), 0), Math.min(Math.max(bin(to), bin(from) + 1), bins));
}

// ---- what does not change

// What is told at once, and what is printed as it was typed; the rest unfolds.
const FIRST = ['Trigger', 'Action', 'Window', 'Samples', 'Swallowed', 'Time'];
const CODE = ['Command', 'Boot', 'File'];

function showWhat()
{
	const time = new Map(data.what), host = time.get('Host');

	$('title').textContent = (data.trigger === null ? 'Recording' : 'Incident') +
		(host ? ' on ' + host : '') + (time.get('Time') ? ', ' + time.get('Time') : '');
	const rows = [...data.what];

	rows.splice(2, 0, ['Window', duration(data.window_ns)], ['Samples', number(data.samples)]);
	const pair = ([name, value]) => element('div', {}, element('dt', {}, name),
		element('dd', {}, CODE.includes(name) ? element('code', {}, value) : value));
	const first = rows.filter(([name]) => FIRST.includes(name));
	const rest = rows.filter(([name]) => !FIRST.includes(name));

	$('what').replaceChildren(...first.map(pair));
	$('more').replaceChildren(...rest.map(pair));
	$('machine').hidden = !rest.length;
	$('messages').textContent = data.messages.join('\n');
	$('printed').hidden = !data.messages.length;
	$('notes').replaceChildren(...[...data.notes, data.aggregated].filter(Boolean).map((note) => element('li', {}, note)));
	const at = (ns) => (ns === null ? '–' : signed(ns - base, digits));

	fill('cpu-table', [['CPU'], ['Samples'], ['Switches'], ['First'], ['Last'], ['Lost'],
			   ['Throttled'], ['Given up'], ['Read', 'text']],
	     data.cpus.map((c) => [cpuName(c.cpu), number(c.samples), number(c.switches), at(c.oldest),
				   at(c.newest), number(c.lost), number(c.throttled),
				   c.given_up ? number(c.given_up) + ' B' : 0, c.way || '–']),
	     'There are no records.');
	$('runs').hidden = !data.hasSwitches;
	fill('run-table', [['Task', 'text'], ['TID'], ['Switches'], ['On CPU'], ['Off CPU']],
	     data.tasks.map((t) => [t.comm, t.tid < 0 ? '' : t.tid, number(t.switches),
				    duration(t.on_ns), duration(t.off_ns)]), 'There are no switches.');
	fill('event-table', [['Event', 'text'], ['Samples']],
	     data.events.map((e) => [e.name, number(e.samples)]), 'There are no samples.');
}

function showViews()
{
	const options = data.events.map((e, i) => element('option', {value: i},
		(e.kind === 'clock' ? 'On-CPU: ' : 'Event: ') + e.name));

	if (data.shownEvents.length > 1)
		options.unshift(element('option', {value: 'all'}, 'On-CPU: ' + viewed()));
	if (data.hasSwitches)
		options.push(element('option', {value: 'off'}, 'Off-CPU: waiting tasks and their call chains'),
			     element('option', {value: 'queue'}, 'Run queue: tasks that waited for a CPU'));
	$('view').replaceChildren(...options);
	$('view').value = usualView();
	$('view').disabled = options.length < 2;
	$('view').addEventListener('change', () => {
		setView($('view').value);
		changed();
	});
}

function setView(value)
{
	$('view').value = value;
	view.kind = /^(off|queue)$/.test(value) ? value : 'event';
	view.events = mask(/^\d/.test(value) ? [Number(value)] : data.shownEvents);
	rank();
	showLegend();
}

// ---- what is shown alone

const FILTERS = {comm: 'of-task', cgroup: 'of-cgroup'};

function showFilters()
{
	const option = ([value, text]) => element('option', {value}, text);
	const names = [...ranking, ...comms.keys()].slice(0, 500 + ranking.length);

	$('of-task').replaceChildren(...[[-1, 'all tasks'], ...[...new Set(names)].slice(0, 500)
		.map((comm) => [comm, comms[comm] || '[no name]'])].map(option));
	$('of-cgroup').replaceChildren(...[[-1, 'all cgroups'], ...data.cgroups.map((name, i) =>
		[i, name || '[unknown]']).sort((a, b) => (a[1] < b[1] ? -1 : 1))].map(option));
	$('of-cgroup').parentNode.hidden = data.cgroups.length < 2;
	for (const [key, id] of Object.entries(FILTERS))
		$(id).addEventListener('change', () => {
			view[key] = Number($(id).value);
			changed();
		});
}

// value: a number, or -1 for all. There may be more tasks than there is a choice of.
function showOnly(key, value)
{
	const choice = $(FILTERS[key]);

	view[key] = value;
	if (![...choice.options].some((o) => o.value === String(value)))
		choice.append(element('option', {value}, comms[value]));
	choice.value = String(value);
}

// ---- a link to what is seen

function updateLink()
{
	const link = new URLSearchParams();
	const put = (key, value, usual) => value !== usual && link.set(key, value);

	put('see', `${part.from}-${part.to}`, `0-${bins}`);
	put('part', part.selection ? part.selection.join('-') : '', '');
	put('view', $('view').value, usualView());
	put('task', view.comm < 0 ? '' : comms[view.comm], '');
	put('cgroup', view.cgroup < 0 ? '' : data.cgroups[view.cgroup], '');
	put('search', $('search').value, '');
	put('compare', compare.mode(), '');
	put('kept', compare.kept() ? compare.kept().join('-') : '', '');
	put('zoom', flame.zoom ?? '', '');
	try {
		history.replaceState(null, '', '#' + link);
	} catch {
		// Browsers bound how often; the next change writes it.
	}
}

const usualView = () => String(data.shownEvents.length > 1 ? 'all' : data.shownEvents[0] ?? 'off');

function followLink()
{
	const link = new URLSearchParams(location.hash.slice(1));
	const range = (text) => {
		const found = /^(\d+)-(\d+)$/.exec(text || '');

		return found && Number(found[1]) < Number(found[2]) && Number(found[2]) <= bins ?
			[Number(found[1]), Number(found[2])] : null;
	};
	const seen = [link.get('view'), usualView()].find((value) =>
		[...$('view').options].some((o) => o.value === value));

	part.selection = range(link.get('part'));
	[part.from, part.to] = range(link.get('see')) || [0, bins];
	showOnly('comm', comms.indexOf(link.get('task')));
	showOnly('cgroup', link.has('cgroup') ? data.cgroups.indexOf(link.get('cgroup')) : -1);
	$('search').value = link.get('search') || '';
	flame.zoom = /^\d+$/.test(link.get('zoom')) ? Number(link.get('zoom')) : null;
	if (seen)
		setView(seen);
	compare.follow(link.get('compare') || '', range(link.get('kept')));
}

const page = {data, $, element, unpackAll, cells, off, base, part, view, passes, prepare, margin, plotWidth, toBin,
	comms, commOf, chains, bins, number, duration, signed, digits, timeOf, selected, count, amount,
	functionSums, fill, searchButton, shortDso, share, drawTrigger, drawShade, selectTime, changed,
	showOnly, setView, usualView, zoomFlame, updateLink,
	scheme: () => scheme};
const lanes = makeLanes(page), compare = makeCompare(page), butterfly = makeButterfly(page);
const findings = makeFindings(page, lanes);

function start()
{
	readScheme();
	rank();
	showWhat();
	findings.show();
	showViews();
	showFilters();
	showLegend();
	compare.start();
	followLink();
	drawTimeline();
	lanes.draw();
	showCount();
	followMouse();
	$('timeline').addEventListener('keydown', (event) => timelineKey(event, moveRow));
	$('states-view').addEventListener('keydown', (event) => timelineKey(event, lanes.move));
	for (const id of ['timeline', 'states-view'])
		for (const name of ['keydown', 'blur'])
			$(id).addEventListener(name, () => $(id).classList.remove('pointed'));
	$('flame').addEventListener('keydown', (event) => flame.chart && flameKey(event));
	$('zoom-in').addEventListener('click', () => zoom(0.5, middle()));
	$('zoom-out').addEventListener('click', () => zoom(2, middle()));
	$('zoom-selection').addEventListener('click', () => part.selection && see(...part.selection));
	$('clear').addEventListener('click', whole);
	$('reset-flame').addEventListener('click', () => flame.chart && flame.chart.resetZoom());
	$('search').addEventListener('input', () => {
		search();
		updateLink();
	});
	window.addEventListener('hashchange', () => {
		followLink();
		changed();
	});
	// The page of several machines holds this one, and hands on what is selected there.
	window.addEventListener('message', (event) => {
		if (event.source !== window.parent || window.parent === window || !event.data)
			return;
		if (event.data.selection)
			selectTime(...event.data.selection);
		else
			whole();
	});
	document.addEventListener('keydown', (event) => {
		if (event.key === '/' && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
			$('search').focus();
			event.preventDefault();
		}
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
		readScheme();
		drawTimeline();
		lanes.draw();
	});
	let width = window.innerWidth;

	window.addEventListener('resize', () => {
		drawTimeline();
		lanes.draw();
		if (window.innerWidth !== width) {
			width = window.innerWidth;
			lanes.showDelays();
			drawFlame(shown);
			search();
		}
	});
	document.body.dataset.ready = 'yes';
}

start();
})();
