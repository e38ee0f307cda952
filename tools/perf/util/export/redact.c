// SPDX-License-Identifier: GPL-2.0
/*
 * What does not leave the machine.
 *
 * A home directory is what /home/ or /root/ is followed by, anywhere in a text: in the name of
 * a file, of its source, of a function that a JIT compiler has named, in an argument of a
 * tracepoint. A path in a text may contain blanks, and then nothing says where it ends. So all
 * up to the last slash of the text is left out, which may be too much but not too little:
 *
 *	/home/alice/shop/checkout		/home/-/checkout
 *	Function:pay /home/alice/a b/pay.js:7	Function:pay /home/-/pay.js:7
 *	/home/alice				/home/-
 *	/root/checkout				/root/checkout
 *
 * without_homes() of scripts/python/incident.py has the same rule for the incident page. A
 * script cannot call this file, so a change of one is a change of both.
 */
#include "redact.h"

#include "debug.h"

#include <errno.h>
#include <linux/kernel.h>
#include <string.h>

static const struct {
	const char	*name;
	unsigned int	flags;
} words[] = {
	{ "args",	EXPORT_REDACT_ARGS },
	{ "home",	EXPORT_REDACT_HOME },
	{ "host",	EXPORT_REDACT_HOST },
	{ "all",	EXPORT_REDACT_ARGS | EXPORT_REDACT_HOME | EXPORT_REDACT_HOST },
};

static unsigned int flags_of(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i].name) == len && !strncmp(word, words[i].name, len))
			return words[i].flags;
	}
	return 0;
}

/**
 * export_redact__parse - parse --redact
 * @what: words, separated by commas
 * @flags: returns bits of enum export_redact
 *
 * Return: 0, or -EINVAL after a message.
 */
int export_redact__parse(const char *what, unsigned int *flags)
{
	unsigned int found;
	size_t len;

	*flags = 0;
	for (;;) {
		len = strcspn(what, ",");
		found = flags_of(what, len);
		if (!found) {
			pr_err("--redact: '%.*s' is unknown: use args, home, host or all, separated by commas.\n",
			       (int)len, what);
			return -EINVAL;
		}
		*flags |= found;
		if (!what[len])
			return 0;
		what += len + 1;
	}
}

/* The first home in a text: what follows the slash, or NULL. */
static const char *find_home(const char *s, bool *root)
{
	const char *home = strstr(s, "/home/"), *of_root = strstr(s, "/root/");

	*root = of_root && (!home || of_root < home);
	if (*root)
		home = of_root;
	if (!home)
		return NULL;
	home += strlen("/home/");
	return home + strspn(home, "/");
}

bool export_redact__has_home(const char *s)
{
	bool root;

	return find_home(s, &root);
}

/**
 * export_redact__home - leave out the directories below a home directory
 * @s: text, which does not become longer
 */
void export_redact__home(char *s)
{
	bool root;
	char *home = (char *)find_home(s, &root), *last;

	if (!home)
		return;
	last = strrchr(home, '/');
	if (last) {
		*home = '-';
		memmove(home + 1, last, strlen(last) + 1);
	} else if (!root && *home) {
		home[0] = '-';
		home[1] = '\0';
	}
}
