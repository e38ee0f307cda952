// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for what users write to a flight recorder: the requests on its
 * socket, and the SPEC of --trigger. The input is a sequence of operations of a few
 * clients (connect, write, close half or all of it, read) and of the recorder (look,
 * begin a dump, complete it). The properties: an answer is one line, a JSON object
 * with the member "ok"; nobody is answered who has not asked, unless it is an error;
 * when all clients have gone, so have all connections, and all deadlines that are not
 * kept; a SPEC that is refused is refused with a message that names a part of it and shows
 * what to use. Before the input, NR_SPECS of them
 * are made of the words of the grammar, from a fixed seed.
 *
 * tests/shell/flight_fuzz.sh builds and runs it.
 */
#include "../../util/flight/trigger/socket.c"
#include "../../util/flight/trigger/local-clock.h"
#include "../../util/flight/trigger/terms.h"
#include "../../util/flight/trigger/watch.h"

#define CLIENTS		4
#define NR_SPECS	100000
#define MAX_WORDS	10
#define SOCKET_NAME	"fuzz.sock"

int verbose;
bool quiet;

static char message[4096];

int eprintf(int level __maybe_unused, int var __maybe_unused, const char *fmt, ...)
{
	size_t len = strlen(message);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message + len, sizeof(message) - len, fmt, ap);
	va_end(ap);
	return 0;
}

int ui__warning(const char *format, ...);

/* Of clockids that users name; there are none. */
int ui__warning(const char *format __maybe_unused, ...)
{
	return 0;
}

/* No messages are read, so none has a time. */
bool local_clock__read(u64 *ns __maybe_unused)
{
	return false;
}

static int parse_any(struct flight_trigger *t, const char *arg)
{
	t->priv = arg ? strdup(arg) : NULL;
	return 0;
}

static void free_any(struct flight_trigger *t)
{
	free(t->priv);
}

const struct flight_trigger_ops flight_trigger_signal = { .name = "signal" };
const struct flight_trigger_ops flight_trigger_event = {
	.name = "event", .slashes = true, .parse = parse_any, .free = free_any,
};

const struct flight_trigger_ops flight_trigger_bpf = {
	.name = "bpf", .parse = parse_any, .free = free_any,
};

/* The programs are not of interest, the grammar of their kinds is. */
int flight_watch__check(const struct flight_trigger *t __maybe_unused)
{
	return 0;
}

int flight_watch__prepare(struct flight_trigger *t __maybe_unused)
{
	return 0;
}

int flight_watch__start(struct flight_trigger *t __maybe_unused)
{
	return 0;
}

unsigned int flight_watch__hits(struct flight_trigger *t __maybe_unused)
{
	return 0;
}

void flight_watch__stop(struct flight_trigger *t __maybe_unused)
{
}

void flight_watch__free(struct flight_trigger *t)
{
	struct flight_watch *w = t->priv;

	if (w) {
		free(w->comm);
		free(w->cgroup);
		free(w->syscall);
	}
	free(w);
}

static void print_status(void *data __maybe_unused, struct json_writer *w)
{
	json_writer__number(w, "window", 1);
}

static struct flight_host host = { .out = "out", .status = print_status };
static struct flight_trigger *trigger;
static struct flight_trigger *deadlines;
static int clients[CLIENTS] = { -1, -1, -1, -1 };
static bool dumps;

static struct server *server(void)
{
	return trigger->priv;
}

static void start(void)
{
	if (flight_triggers__add(&trigger, "socket:" SOCKET_NAME) ||
	    flight_triggers__add_deadline(&trigger))
		abort();
	host.triggers = trigger;
	if (flight_triggers__start(trigger, &host))
		abort();
	/* Nobody else's perf ctl is to find it: all connections are those of the input. */
	if (server()->entry.fd >= 0)
		unlinkat(server()->entry.dir, server()->entry.name, 0);
	deadlines = flight_triggers__find(trigger, &flight_trigger_deadline);
}

static void client_connect(int i)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = SOCKET_NAME };

	if (clients[i] >= 0)
		return;
	clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(clients[i], (struct sockaddr *)&addr, sizeof(addr))) {
		close(clients[i]);
		clients[i] = -1;
	}
}

/* Whatever waits there; a socket holds no more than a few 100 KiB. */
static void client_read(int i)
{
	static char buf[1 << 20];
	char *line = buf, *end;
	ssize_t n = 0, more;

	if (clients[i] < 0)
		return;
	while ((more = recv(clients[i], buf + n, sizeof(buf) - 1 - n, MSG_DONTWAIT)) > 0)
		n += more;
	buf[n] = '\0';
	if (strlen(buf) != (size_t)n)
		abort();
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			abort();
		if (!strstarts(line, "{\"ok\": true") &&
		    !strstarts(line, "{\"ok\": false, \"error\": "))
			abort();
		if (end[-1] != '}')
			abort();
	}
}

static void client_close(int i)
{
	if (clients[i] >= 0)
		close(clients[i]);
	clients[i] = -1;
}

/* As the recorder does: a hit, a dump that begins, and one that ends. */
static void look(void)
{
	if (trigger->ops->hits(trigger) && trigger_is_ready(&trigger->state))
		trigger_hit(&trigger->state);
	if (server()->nr > MAX_CONNECTIONS)
		abort();
	deadlines->ops->hits(deadlines);
	if (flight_deadline__nr(deadlines) > FLIGHT_MAX_DEADLINES)
		abort();
}

static void begin(void)
{
	if (dumps || !trigger_is_hit(&trigger->state))
		return;
	trigger->ops->begun(trigger);
	trigger_ready(&trigger->state);
	trigger->wanted = FLIGHT_ACTION_DUMP;
	dumps = true;
}

static void complete(int err)
{
	struct dump_result result = { .err = -err, .path = "a \"file\"", .events = 1 };

	if (!dumps)
		return;
	trigger->ops->done(trigger, &result);
	dumps = false;
}

static bool has_empty_part(const char *spec)
{
	size_t len = strlen(spec);

	return !len || spec[len - 1] == ',' || strstr(spec, ",,");
}

/* Is that between quotes, or in front of the colon of "--trigger KIND:", of the SPEC? */
static bool names_part(const char *spec)
{
	static const char prefix[] = "--trigger ";
	const char *kind = message + strlen(prefix);
	size_t len = strcspn(kind, ":");
	char *begin = message, *end;

	/* A quote of the SPEC cannot be told from those of the message. */
	if (strchr(spec, '\'') || (strstarts(message, prefix) && !strncmp(spec, kind, len)))
		return true;
	for (; (begin = strchr(begin, '\'')) && (end = strchr(begin + 1, '\'')); begin = end + 1) {
		char *part = strndup(begin + 1, end - begin - 1);
		bool found = *part ? strstr(spec, part) : has_empty_part(spec);

		free(part);
		if (found)
			return true;
	}
	return false;
}

static bool names_value(const char *spec)
{
	char word[512];

	return sscanf(message, "--trigger: %511s is not a time", word) == 1 && strstr(spec, word);
}

static bool shows_form(void)
{
	return strstr(message, "use ") || strstr(message, "Use ");
}

static void parse_spec(const uint8_t *data, size_t size)
{
	struct flight_trigger *triggers = NULL;
	char *spec = strndup((const char *)data, size);

	*message = '\0';
	if (!flight_triggers__add(&triggers, spec) != !!triggers)
		abort();
	if (!triggers && (!shows_form() || !(names_part(spec) || names_value(spec)))) {
		fprintf(stderr, "%s: %s", spec, message);
		abort();
	}
	flight_triggers__free(&triggers);
	free(spec);
}

static void parse_many(void)
{
	static const char *const words[] = {
		"psi", "kmsg", "oom", "hung", "lockup", "rcu-stall", "cpu", "exit", "signal",
		"socket", "deadline", "event", "bpf", "/", "/", "/", ":", ",", ",", ",", "=",
		"busy", "for=5s", "over=95%", "over=", "match=", "match=a(b|c)*", "[", "(", "\\",
		"latency", "syscall", "runq", "offcpu", "irqoff", "over=20ms", "comm=x",
		"comm=sixteen-letters-", "cgroup=a/b", "name=74", "name=fsync",
		"some", "full", "resource=memory", "resource=io", "resource=", "window=1s",
		"signal=SEGV", "signal=11", "signal=", "signal=-1", "action=stop", "delay=1ms",
		"cooldown=0", "freeze", "1e9", "%", "\xff",
	};
	u64 seed = 88172645463325252ULL;

	for (int i = 0; i < NR_SPECS; i++) {
		char spec[256] = "";
		size_t len = 0;

		for (int n = 0; n < MAX_WORDS; n++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			if (!(seed >> 32 & 7))
				break;
			len += scnprintf(spec + len, sizeof(spec) - len, "%s",
					 words[seed % ARRAY_SIZE(words)]);
		}
		parse_spec((const uint8_t *)spec, len);
	}
}

static void all_gone(void)
{
	for (int i = 0; i < CLIENTS; i++) {
		client_read(i);
		client_close(i);
	}
	for (int i = 0; i < 100; i++) {
		look();
		begin();
		complete(0);
	}
	if (server()->nr)
		abort();
	/* What is left was kept. */
	flight_deadline__forget(deadlines, NULL);
	if (flight_deadline__nr(deadlines))
		abort();
	trigger->quiet_until = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!trigger) {
		start();
		parse_many();
	}
	while (size) {
		int op = *data & 15, i = *data >> 4 & (CLIENTS - 1);
		size_t len;

		data++;
		size--;
		switch (op) {
		case 0:
			client_connect(i);
			break;
		case 1:
			client_close(i);
			break;
		case 2:
			if (clients[i] >= 0)
				shutdown(clients[i], SHUT_WR);
			break;
		case 3:
			client_read(i);
			break;
		case 4:
			begin();
			break;
		case 5:
			complete(i);
			break;
		case 6:
			trigger->quiet_until = i ? ~0ULL : 0;
			break;
		case 7:
			len = min(size, (size_t)64);
			parse_spec(data, len);
			data += len;
			size -= len;
			break;
		default:
			/* The length of a text, and the text. */
			len = size ? min(size - 1, (size_t)*data * (op & 1 ? 1 : 4)) : 0;
			client_connect(i);
			if (len && clients[i] >= 0)
				send(clients[i], data + 1, len, MSG_DONTWAIT | MSG_NOSIGNAL);
			data += size ? len + 1 : 0;
			size -= size ? len + 1 : 0;
			look();
			break;
		}
	}
	look();
	all_gone();
	return 0;
}
