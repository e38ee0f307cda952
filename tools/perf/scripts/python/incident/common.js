// SPDX-License-Identifier: GPL-2.0
//
// What the page of an incident and that of several machines have in common.
'use strict';

function element(name, attributes, ...children)
{
	const e = document.createElement(name);

	for (const [key, value] of Object.entries(attributes || {}))
		e.setAttribute(key, value);
	e.append(...children);
	return e;
}

// In the unit that people read best
function duration(ns)
{
	if (ns >= 1e9)
		return (ns / 1e9).toFixed(3) + ' s';
	return ns >= 1e6 ? (ns / 1e6).toFixed(3) + ' ms' : (ns / 1e3).toFixed(1) + ' µs';
}
