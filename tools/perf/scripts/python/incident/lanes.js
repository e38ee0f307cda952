// SPDX-License-Identifier: GPL-2.0
//
// Lanes and histograms of the page of perf script report incident.
//
// A lane is a row of a task. data.lanes has runs of steps of time, (task, first step, steps), with
// the shares of the time that the task ran, could run, was blocked, and slept, of 255. What is
// left of a step is not known. data.delays has the number of waits by the part of the window in
// which they ended and the power of two of their length in microseconds.
'use strict';

const makeLanes = (page) => {
const {data, $, element, part, view} = page;
const HEIGHT = 18, STATES = 4, MOST_POWER = 32, BAR_HEIGHT = 96, LABEL_WIDTH = 48;
const NAMES = ['ran', 'could run, and waited for a CPU', 'was blocked', 'slept'];
const lanes = page.unpackAll(data.lanes), delays = page.unpackAll(data.delays);
const scale = data.step / data.bin;
const rowsOf = data.lanes.tasks.map(() => []);

lanes.lane.forEach((lane, i) => rowsOf[lane].push(i));

const nameOf = (lane) => data.taskNames[data.lanes.tasks[lane]];
let shown = [], row = -1;

// The lanes of the tasks that the filter leaves
function choose()
{
	shown = rowsOf.map((_, lane) => lane).filter((lane) =>
		view.comm < 0 || page.commOf[data.lanes.tasks[lane]] === view.comm);
	row = Math.min(row, shown.length - 1);
}

const shares = (i) => [lanes.ran[i], lanes.runnable[i], lanes.blocked[i], lanes.slept[i]];

// Of each pixel, what share of the time a task was in which state
function pixels(lane, width)
{
	const sums = new Float32Array(width * STATES), zoom = width / (part.to - part.from);

	for (const i of rowsOf[lane]) {
		const from = Math.max((lanes.bin[i] * scale - part.from) * zoom, 0);
		const to = Math.min(((lanes.bin[i] + lanes.bins[i]) * scale - part.from) * zoom, width);
		const of = shares(i);

		for (let x = Math.floor(from); x < to; x++) {
			const inside = Math.min(x + 1, to) - Math.max(x, from);

			for (let state = 0; state < STATES; state++)
				sums[x * STATES + state] += of[state] / 255 * inside;
		}
	}
	return sums;
}

// Pixels that look the same are one rectangle.
function drawLane(c, lane, y, width, colours)
{
	const sums = pixels(lane, width), room = HEIGHT - 4;
	const look = (x) => [0, 1, 2, 3].map((s) => Math.round(sums[x * STATES + s] * room));
	let from = 0, now = width ? look(0) : [];

	for (let x = 1; x <= width; x++) {
		const next = x < width ? look(x) : [];

		if (next.length && next.every((size, s) => size === now[s]))
			continue;
		let top = y + HEIGHT - 2;

		now.forEach((size, s) => {
			// What happened is seen, however short it was.
			if (!size && s < STATES - 1 && sums[from * STATES + s] > 0.01)
				size = 1;
			size = Math.min(size, top - y - 2);
			c.fillStyle = colours[s];
			c.fillRect(page.margin() + from, top - size, x - from, size);
			top -= size;
		});
		from = x;
		now = next;
	}
}

function cut(c, text, room)
{
	if (c.measureText(text).width <= room)
		return text;
	while (text && c.measureText(text + '…').width > room)
		text = text.slice(0, -1);
	return text + '…';
}

function draw()
{
	choose();
	$('states').hidden = !data.lanes.tasks.length;
	if (!data.lanes.tasks.length)
		return;
	const width = $('lane-rows').clientWidth, height = Math.max(HEIGHT * shown.length, 1);
	const c = page.prepare($('lanes'), width, height), scheme = page.scheme();

	shown.forEach((lane, i) => {
		const y = i * HEIGHT, [, tid, comm] = nameOf(lane);

		c.fillStyle = scheme.rule;
		c.fillRect(0, y, width, 1);
		c.fillStyle = i === row ? scheme.accent : scheme.quiet;
		c.textAlign = 'right';
		c.textBaseline = 'middle';
		// Names may be equal: of a long one, the id is what stays.
		const id = page.margin() > 100 ? ' ' + tid : '';

		c.fillText(cut(c, (i === row ? '▸ ' : '') + comm, page.margin() - 12 -
			       c.measureText(id).width) + id, page.margin() - 8, y + HEIGHT / 2 + 1);
		drawLane(c, lane, y, Math.floor(page.plotWidth()), scheme.states);
	});
	page.drawTrigger(c, height);
	page.drawShade();
}

// A task from a bin on, for so many bins, in words
function describe(lane, bin, wide)
{
	const sums = [0, 0, 0, 0], [, tid, comm] = nameOf(lane);

	for (const i of rowsOf[lane]) {
		const inside = Math.min((lanes.bin[i] + lanes.bins[i]) * scale, bin + wide) -
			Math.max(lanes.bin[i] * scale, bin);

		if (inside > 0)
			shares(i).forEach((of, s) => { sums[s] += of / 255 * inside * data.bin; });
	}
	const did = sums.map((ns, s) => [ns, NAMES[s]]).filter(([ns]) => ns >= 500)
		.map(([ns, name]) => `${name} ${page.duration(ns)}`);

	return `${comm} (${tid}) at ${page.signed(page.timeOf(bin), page.digits)}: ` +
		(did.join(', ') || 'nothing is known') + ` of ${page.duration(wide * data.bin)}`;
}

function describeAt(event)
{
	const bin = Math.floor(page.toBin(event.offsetX)), lane = shown[Math.floor(event.offsetY / HEIGHT)];

	if (lane === undefined || bin < part.from || bin >= part.to)
		return '\u00a0';
	return describe(lane, bin, Math.max((part.to - part.from) / page.plotWidth(), scale));
}

function move(by)
{
	row = Math.max(0, Math.min(row + by, shown.length - 1));
	draw();
	tellRow();
}

function tellRow()
{
	const rows = $('lane-rows');

	rows.scrollTop = Math.min(Math.max(rows.scrollTop, (row + 1) * HEIGHT - rows.clientHeight),
				  row * HEIGHT);
	const [from, to] = part.selection || [part.from, part.to];

	$('lane-hover').textContent = shown.length ? describe(shown[row], from, to - from) : '';
}

// The lane of a task, if it has one
function mark(task)
{
	choose();
	row = shown.findIndex((lane) => data.lanes.tasks[lane] === task);
	draw();
	if (row >= 0)
		tellRow();
	return row >= 0;
}

// ---- histograms

// 2^power microseconds, to two or three digits
function limit(power)
{
	const us = 2 ** power, [n, unit] = us < 1000 ? [us, 'µs'] : us < 1e6 ? [us / 1e3, 'ms'] : [us / 1e6, 's'];

	return (n < 10 && unit !== 'µs' ? n.toFixed(1) : n.toFixed(0)) + ' ' + unit;
}

function showBars(id, what, counts)
{
	const total = counts.reduce((a, n) => a + n, 0), most = Math.max(...counts);
	const used = counts.map((n, power) => [n, power]).filter(([n]) => n).map(([, power]) => power);
	const plot = element('div', {class: 'plot', 'aria-hidden': 'true'});
	let text = `${what}: ${total ? page.number(total) + (total > 1 ? ' waits' : ' wait') : 'none'}`, sum = 0;

	if (total) {
		const half = counts.findIndex((n) => (sum += n) * 2 >= total);

		if (total > 1)
			text += `, half of them below ${limit(half)}`;
		text += `${total > 1 ? ', the longest' : ', it was'} below ${limit(used.at(-1))}`;
		// Where bars are narrow, not each has room for its limit.
		const bars = used.at(-1) - used[0] + 1;
		const every = Math.ceil(LABEL_WIDTH / Math.min($(id).clientWidth / bars, LABEL_WIDTH));

		for (let power = used[0]; power <= used.at(-1); power++) {
			const n = counts[power], least = 4;
			const height = n ? least + (BAR_HEIGHT - least) * Math.log(1 + n) / Math.log(1 + most) : 0;
			const says = `${page.number(n)} from ${power ? limit(power - 1) : '0'} to ${limit(power)}`;

			plot.append(element('div', {title: says}, element('i', {style: `height: ${height}px`}),
					    element('span', {}, (power - used[0]) % every ? '' : limit(power))));
		}
	}
	$(id).replaceChildren(element('figcaption', {}, text), ...(total ? [plot] : []));
}

function showDelays()
{
	const [from, to] = page.selected(), kinds = [0, 1].map(() => Array(MOST_POWER).fill(0));
	const wide = data.part / data.bin;

	$('waits').hidden = !data.hasSwitches;
	for (let i = 0; i < delays.bin.length; i++) {
		const middle = (delays.bin[i] + 0.5) * wide;

		if (middle >= from && middle < Math.max(to, from + wide) &&
		    page.passes(delays.task[i], delays.cgroup[i]))
			kinds[delays.kind[i]][Math.min(delays.power[i], MOST_POWER - 1)] += delays.count[i];
	}
	showBars('delay-bars', 'Waited for a CPU', kinds[0]);
	showBars('wait-bars', 'Slept or was blocked', kinds[1]);
	$('waits-note').textContent = (data.hasWakeups ? '' : 'Wakeups were not recorded ' +
		'(sched:sched_waking): time that a task waited for a CPU after a wakeup counts as ' +
		'sleeping. ') + `Waits that ended in the selected part, in steps of ${page.duration(data.part)}, by the ` +
		'logarithm of their number.';
}

return {draw, move, mark, describeAt, showDelays};
};
