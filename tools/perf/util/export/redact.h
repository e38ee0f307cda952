/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_REDACT_H
#define __PERF_EXPORT_REDACT_H

#include <stdbool.h>

/**
 * enum export_redact - what is left out of a conversion
 * @EXPORT_REDACT_ARGS: arguments of tracepoints, the reason of a trigger, which may have them,
 *	and addresses in no mapping, which may be words of a program's memory
 * @EXPORT_REDACT_HOME: directories below home directories
 * @EXPORT_REDACT_HOST: names of the machine, and of its containers and pods
 */
enum export_redact {
	EXPORT_REDACT_ARGS	= 1 << 0,
	EXPORT_REDACT_HOME	= 1 << 1,
	EXPORT_REDACT_HOST	= 1 << 2,
};

int export_redact__parse(const char *what, unsigned int *flags);
bool export_redact__has_home(const char *s);
void export_redact__home(char *s);

#endif /* __PERF_EXPORT_REDACT_H */
