// SPDX-License-Identifier: GPL-2.0
/*
 * What a text is replaced by
 *
 * A token is a hash of the text and of its kind with a key that is drawn for each copy and
 * then forgotten. So equal texts of a copy have equal tokens, and nobody can try out texts,
 * or compare two copies. A token has the same length whatever it stands for.
 *
 * Few texts stay: those that are the kernel's own and the same on all machines, such as
 * [vdso] or swapper/3. They are compared as a whole, as a user can give any name to a task or
 * a file. --keep adds kinds of texts. Even then a text is replaced if it has the name of the
 * machine in it, has unusual characters, or may have a home directory in it: only the
 * directories that a distribution fills are known to have none.
 *
 * The hash is SipHash-2-4, by J.-P. Aumasson and D. J. Bernstein, written after their paper.
 */
#include "words.h"
#include "../debug.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

/* Bits of a hash that a digit of a token shows, and digits */
#define DIGIT_BITS	5
#define NR_DIGITS	12

/* What a name of a task has room for, with its NUL */
#define COMM_MAX	16

static const struct {
	const char	*name;
	unsigned int	bits;
} keeps[] = {
	{ "comm",	REDACT_KEEP_COMM },
	{ "files",	REDACT_KEEP_FILES },
	{ "build-ids",	REDACT_KEEP_BUILD_IDS },
	{ "cgroups",	REDACT_KEEP_CGROUPS },
	{ "host",	REDACT_KEEP_HOST },
	{ "kernel",	REDACT_KEEP_KERNEL },
};

static unsigned int find_keep(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(keeps); i++) {
		if (strlen(keeps[i].name) == len && !memcmp(word, keeps[i].name, len))
			return keeps[i].bits;
	}
	return 0;
}

static int parse_keep(struct redact_words *w, const char *keep)
{
	while (keep) {
		size_t len = strcspn(keep, ",");
		unsigned int bits = find_keep(keep, len);

		if (!bits) {
			pr_err("--keep: '%.*s' is unknown: use comm, files, build-ids, cgroups, host or kernel, separated by commas.\n",
			       (int)len, keep);
			return -EINVAL;
		}
		w->keep |= bits;
		keep = keep[len] ? keep + len + 1 : NULL;
	}
	return 0;
}

/**
 * redact_words__init - draw a key
 * @w: the words
 * @keep: what stays, separated by commas, or NULL
 *
 * Return: 0 or a negative errno after a message.
 */
int redact_words__init(struct redact_words *w, const char *keep)
{
	memset(w, 0, sizeof(*w));
	if (getrandom(w->key, sizeof(w->key), 0) != sizeof(w->key)) {
		int err = -errno;

		pr_err("No random key can be drawn: %s.\n", strerror(-err));
		return err;
	}
	return parse_keep(w, keep);
}

/**
 * redact_words__hide_host - learn the name of the machine
 * @w: the words
 * @which: 0: as the file has it, 1: as the manifest has it
 * @name: the name, which is replaced in other texts, too
 * @len: its length; a NUL ends it before
 */
void redact_words__hide_host(struct redact_words *w, int which, const char *name, size_t len)
{
	char *host = w->hosts[which];

	len = min(strnlen(name, len), sizeof(w->hosts[0]) - 1);
	memcpy(host, name, len);
	host[len] = '\0';
	/* The first part is sufficient: a text with the whole name contains it, too. */
	host[strcspn(host, ".")] = '\0';
}

/* The hash */

static u64 rotate(u64 word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(u64 v[4], int rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32) + v[3];
		v[2] += v[1];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void take(u64 v[4], u64 word)
{
	v[3] ^= word;
	mix(v, 2);
	v[0] ^= word;
}

static u64 hash(const struct redact_words *w, enum redact_kind kind, const void *data,
		size_t len)
{
	u64 v[4] = {
		w->key[0] ^ 0x736f6d6570736575ULL,
		w->key[1] ^ 0x646f72616e646f6dULL,
		w->key[0] ^ 0x6c7967656e657261ULL,
		w->key[1] ^ 0x7465646279746573ULL,
	};
	u64 word, last = (u64)len << 56;

	take(v, kind);
	for (; len >= sizeof(word); len -= sizeof(word), data += sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		take(v, word);
	}
	word = 0;
	memcpy(&word, data, len);
	take(v, last | word);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/**
 * redact_words__address - what stands for an address
 * @w: the words
 * @address: the address; 0 stays 0
 */
u64 redact_words__address(const struct redact_words *w, u64 address)
{
	return address ? hash(w, REDACT_ADDRESS, &address, sizeof(address)) : 0;
}

/* Texts that stay */

static bool is_one_of(const char *text, const char *const *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(text, words[i]))
			return true;
	}
	return false;
}

/* What perf or the kernel calls a mapping that is no file */
static bool is_fixed_file(const char *text)
{
	static const char *const words[] = {
		"[kernel.kallsyms]", "[kernel.kallsyms]_text", "[kernel.kallsyms]_stext",
		"[guest.kernel.kallsyms]", "[guest.kernel.kallsyms]_text",
		"[guest.kernel.kallsyms]_stext", "__entry_SYSCALL_64_trampoline",
		"[vdso]", "[vvar]", "[vsyscall]", "[vectors]", "[sigpage]", "[heap]", "[stack]",
		"[uprobes]", "[anon]", "//anon", "[unknown]",
	};

	return is_one_of(text, words, ARRAY_SIZE(words));
}

static bool is_fixed_symbol(const char *text)
{
	static const char *const words[] = {
		"ftrace_trampoline", "kprobe_insn_page", "kprobe_optinsn_page",
	};

	return is_one_of(text, words, ARRAY_SIZE(words));
}

/* Bytes of the number, of a CPU or a node, that a text begins with; 0 if it is none. */
static size_t number_len(const char *text)
{
	size_t nr = strspn(text, "0123456789");

	return nr <= 4 ? nr : 0;
}

/* Is the text one of the kernel's threads of a CPU or a node, and nothing else? */
static bool is_thread_of_cpu(const char *text)
{
	static const char *const names[] = {
		"swapper/", "ksoftirqd/", "migration/", "cpuhp/", "kswapd", "kcompactd",
		"rcuc/", "ktimers/",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]), digits;

		if (strncmp(text, names[i], len))
			continue;
		digits = number_len(text + len);
		return digits && !text[len + digits];
	}
	return false;
}

static bool is_fixed_comm(const char *text)
{
	static const char *const words[] = {
		"swapper", "kthreadd", "rcu_preempt", "rcu_sched", "khugepaged", "ksmd",
		"kauditd", "khungtaskd", "oom_reaper",
	};

	return is_one_of(text, words, ARRAY_SIZE(words)) || is_thread_of_cpu(text);
}

/*
 * kworker/u8:2-events becomes kworker/u8:2: what follows is the name of a queue, which may
 * be that of a disk. Return: bytes, or 0 if it is no kworker.
 */
static size_t kworker_len(const char *text)
{
	size_t len = strlen("kworker/"), nr;

	if (strncmp(text, "kworker/", len))
		return 0;
	len += text[len] == 'u';
	nr = number_len(text + len);
	if (!nr || text[len + nr] != ':')
		return 0;
	len += nr + 1;
	nr = number_len(text + len);
	if (!nr)
		return 0;
	len += nr;
	len += text[len] == 'H';
	return !text[len] || text[len] == '-' || text[len] == '+' ? len : 0;
}

static bool has_host(const struct redact_words *w, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(w->hosts); i++) {
		if (*w->hosts[i] && strcasestr(text, w->hosts[i]))
			return true;
	}
	return false;
}

static bool has_only(const char *text, const char *others)
{
	for (; *text; text++) {
		if (!isascii(*text) || (!isalnum(*text) && !strchr(others, *text)))
			return false;
	}
	return true;
}

/* Below a directory that a distribution fills? */
static bool is_of_system(const char *text)
{
	static const char *const directories[] = {
		"/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/",
		"/usr/libexec/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/",
	};
	bool is_below = false;

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		is_below |= !strncmp(text, directories[i], strlen(directories[i]));
	return is_below && has_only(text, "/._+-@") && !strstr(text, "/..") &&
	       !strstr(text, "//") && !strcasestr(text, "/home/") && !strcasestr(text, "/root/");
}

/* Has the text the form of such a name, with nothing in it that could be another one? */
static bool is_plain(enum redact_kind kind, const char *text)
{
	size_t len = strlen(text);

	switch (kind) {
	case REDACT_COMM:
		return len < COMM_MAX && has_only(text, "._+-:#()");
	case REDACT_FILE:
		return is_of_system(text);
	case REDACT_MODULE:
		if (*text == '[')
			return len > 2 && text[len - 1] == ']' && has_only(text, "[]_-") &&
			       strcspn(text + 1, "[") == len - 1 && strcspn(text, "]") == len - 1;
		return !strncmp(text, "/lib/modules/", strlen("/lib/modules/")) &&
		       is_of_system(text);
	case REDACT_CGROUP:
		return *text == '/' && has_only(text, "/._+-@:\\") &&
		       !strcasestr(text, "home");
	case REDACT_HOST:
		return has_only(text, ".-");
	default:
		return false;
	}
}

static unsigned int keep_of(enum redact_kind kind)
{
	switch (kind) {
	case REDACT_COMM:
		return REDACT_KEEP_COMM;
	case REDACT_FILE:
	case REDACT_MODULE:
		return REDACT_KEEP_FILES;
	case REDACT_CGROUP:
		return REDACT_KEEP_CGROUPS;
	case REDACT_HOST:
		return REDACT_KEEP_HOST;
	default:
		return 0;
	}
}

static bool is_kept(const struct redact_words *w, enum redact_kind kind, const char *text)
{
	if (!(w->keep & keep_of(kind)) || !is_plain(kind, text))
		return false;
	return w->keep & REDACT_KEEP_HOST || !has_host(w, text);
}

/* Bytes of the text that are the kernel's own */
static size_t fixed_len(enum redact_kind kind, const char *text)
{
	bool is_fixed = !*text;

	switch (kind) {
	case REDACT_COMM:
		is_fixed |= is_fixed_comm(text);
		if (!is_fixed)
			return kworker_len(text);
		break;
	case REDACT_FILE:
	case REDACT_MODULE:
		is_fixed |= is_fixed_file(text);
		break;
	case REDACT_SYMBOL:
		is_fixed |= is_fixed_symbol(text);
		break;
	case REDACT_CGROUP:
		is_fixed |= !strcmp(text, "/");
		break;
	default:
		break;
	}
	return is_fixed ? strlen(text) : 0;
}

/* Tokens */

static size_t put_token(const struct redact_words *w, enum redact_kind kind, const char *text,
			size_t len, char *out)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	static const struct {
		const char	*before;
		const char	*behind;
	} forms[] = {
		[REDACT_COMM]	= { "t-",		"" },
		[REDACT_FILE]	= { "/redacted/f-",	"" },
		[REDACT_MODULE]	= { "[m-",		"]" },
		[REDACT_SYMBOL]	= { "s-",		"" },
		[REDACT_CGROUP]	= { "/c-",		"" },
		[REDACT_DEVICE]	= { "d-",		"" },
		[REDACT_EVENT]	= { "tp_",		"" },
		[REDACT_HOST]	= { "h-",		"" },
		[REDACT_OTHER]	= { "x-",		"" },
	};
	u64 value = hash(w, kind, text, len);
	char digits[NR_DIGITS + 1] = "";

	for (int i = 0; i < NR_DIGITS; i++, value >>= DIGIT_BITS)
		digits[i] = alphabet[value & ((1 << DIGIT_BITS) - 1)];
	return snprintf(out, REDACT_TOKEN_MAX, "%s%s%s", forms[kind].before, digits,
			forms[kind].behind);
}

/**
 * redact_words__put - write what a text is replaced by
 * @w: the words
 * @kind: what the text is
 * @text: the text
 * @len: bytes that it has at most; a NUL ends it before
 * @out: room for %REDACT_TEXT_MAX bytes
 *
 * Return: the length of what was written, which a NUL follows.
 */
size_t redact_words__put(const struct redact_words *w, enum redact_kind kind,
			 const char *text, size_t len, char *out)
{
	size_t fixed;

	len = strnlen(text, len);
	if (len >= REDACT_TEXT_MAX)
		return put_token(w, kind, text, len, out);
	memcpy(out, text, len);
	out[len] = '\0';
	fixed = fixed_len(kind, out);
	if (fixed || !len) {
		out[fixed] = '\0';
		return fixed;
	}
	if (is_kept(w, kind, out))
		return len;
	return put_token(w, kind, text, len, out);
}

/**
 * redact_words__release - write the version of the kernel or of perf, without its names
 * @w: the words
 * @text: the release, such as 6.12.5-myhost-custom
 * @len: bytes that it has at most; a NUL ends it before
 * @out: room for %REDACT_TEXT_MAX bytes
 *
 * Return: the length of what was written, which a NUL follows.
 */
size_t redact_words__release(const struct redact_words *w, const char *text, size_t len,
			     char *out)
{
	char whole[128] = "";

	len = min(strnlen(text, len), sizeof(whole) - 1);
	memcpy(whole, text, len);
	if (!(w->keep & REDACT_KEEP_KERNEL) || !has_only(whole, "._+-~") ||
	    (!(w->keep & REDACT_KEEP_HOST) && has_host(w, whole)))
		len = strspn(whole, "0123456789.");
	while (len && whole[len - 1] == '.')
		len--;
	memcpy(out, whole, len);
	out[len] = '\0';
	return len;
}
