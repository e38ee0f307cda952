/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_PYTHON_SAMPLES_H
#define __PERF_PYTHON_SAMPLES_H

#include <Python.h>
#include <stdbool.h>

struct addr_location;
struct evsel;
struct perf_sample;

PyObject *python_samples__callchain(PyObject *script, struct perf_sample *sample,
				    struct evsel *evsel, struct addr_location *al);
bool python_samples__process(PyObject *script, struct perf_sample *sample,
			     struct evsel *evsel, struct addr_location *al);
bool python_samples__tracepoint(PyObject *script, struct perf_sample *sample,
				struct evsel *evsel, struct addr_location *al);

#endif /* __PERF_PYTHON_SAMPLES_H */
