// SPDX-License-Identifier: GPL-2.0
/*
 * Read the image of a black box, and check it as strictly as possible.
 *
 * usage: blackbox_read [-f TEXT] [-t] [-d BYTES -o COPY] IMAGE
 *	-f TEXT		count the samples whose bytes contain TEXT; may be given several times
 *	-t		print the tasks
 *	-d BYTES	write a copy in which a writer of each buffer died after it had reserved
 *	-o COPY		so many bytes, and had overwritten the oldest records there
 *
 * It uses the headers of the ABI alone. It prints one line for each thing that it finds, and
 * "error ..." for each that is wrong; the status is then 1. Status 2: there is no image.
 *
 * What must hold for each ring buffer: from the newest record to the oldest that is intact,
 * records follow each other without a gap, have the id of an event that writes to this buffer,
 * the CPU of the buffer, and times that do not increase.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_blackbox.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the events of a session need, and those of this test have in addition */
#define SAMPLE_NEEDS	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME)
#define SAMPLE_KNOWN	(SAMPLE_NEEDS | PERF_SAMPLE_TID | PERF_SAMPLE_CPU | PERF_SAMPLE_IP | \
			 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

/* What is looked for at a time */
#define MAX_TEXTS	8

static unsigned char *image;
static __u64 image_size;
static const struct perf_blackbox_super *super;
static const char *texts[MAX_TEXTS];
static __u64 found[MAX_TEXTS];
static unsigned int nr_texts;
static int errors;

#define error(fmt, ...) (errors++, printf("error " fmt "\n", ##__VA_ARGS__))

static __u32 crc32(const void *data, size_t size)
{
	const unsigned char *p = data;
	__u32 crc = ~0U;
	int bit;

	while (size--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
	}
	return ~crc;
}

/* NULL if the bytes are not within the image */
static const void *at(__u64 offset, __u64 size)
{
	return offset <= image_size && size <= image_size - offset ? image + offset : NULL;
}

/* The entry with that number of an array, or NULL if it is free; @wrong if it is damaged */
static const void *entry(__u64 array, __u32 size, __u32 nr, bool *wrong)
{
	const __u32 *p = at(array + nr * size, size);

	*wrong = !p || (p[0] && (p[0] != PERF_BLACKBOX_VALID || p[1] != crc32(p + 2, size - 8)));
	return *wrong || !p[0] ? NULL : p;
}

static const char *state_name(__u32 state)
{
	switch (state) {
	case PERF_BLACKBOX_LIVE:
		return "live";
	case PERF_BLACKBOX_CLEAN:
		return "clean";
	case PERF_BLACKBOX_DEAD:
		return "dead";
	case PERF_BLACKBOX_RELEASED:
		return "released";
	default:
		return "unknown";
	}
}

static int read_super(void)
{
	const struct perf_blackbox_life *life;
	unsigned int i;

	super = at(0, sizeof(*super));
	if (!super || super->magic != PERF_BLACKBOX_MAGIC) {
		printf("no image\n");
		return 2;
	}
	if (super->size < sizeof(*super) || !at(0, super->size) ||
	    crc32(image, super->size - 4) != *(__u32 *)(image + super->size - 4)) {
		error("superblock is damaged");
		return 1;
	}
	if (super->version != PERF_BLACKBOX_VERSION || super->image_size != image_size) {
		error("version %u, size %llu", super->version, super->image_size);
		return 1;
	}
	life = at(super->life, sizeof(*life));
	printf("state %s\n", life ? state_name(life->state) : "none");
	printf("generation %llu\n", super->generation);
	printf("boot ");
	for (i = 0; i < sizeof(super->boot_uuid); i++)
		printf("%02x", super->boot_uuid[i]);
	printf("\nlabel %s\nrelease %s\nbuild_id ", super->label, super->release);
	for (i = 0; i < super->build_id_size && i < sizeof(super->build_id); i++)
		printf("%02x", super->build_id[i]);
	printf("\ntext %llx\n", super->text);
	return 0;
}

static void read_death(bool tasks)
{
	const struct perf_blackbox_death *death;
	const struct perf_blackbox_task *task;
	bool wrong;
	__u32 i;

	death = entry(super->death, sizeof(*death), 0, &wrong);
	if (wrong)
		error("death is damaged");
	if (!death)
		return;

	printf("death kind %u cpu %d pid %d comm %s tasks %u time %llu mono %llu reason %s\n",
	       death->kind, death->cpu, death->pid, death->comm, death->nr_tasks,
	       death->clock.perf, death->clock.mono, death->reason);
	task = at(super->tasks, death->nr_tasks * super->task_size);
	if (!task || death->nr_tasks > super->max_tasks ||
	    crc32(task, death->nr_tasks * super->task_size) != death->tasks_crc) {
		error("tasks are damaged");
		return;
	}
	for (i = 0; tasks && i < death->nr_tasks; i++) {
		task = at(super->tasks + i * super->task_size, sizeof(*task));
		printf("task %d %d %s%s\n", task->pid, task->tgid, task->comm,
		       task->flags & PERF_BLACKBOX_TASK_KERNEL ? " kernel" : "");
	}
}

static const struct perf_blackbox_notes *valid_notes(__u64 offset, __u64 slot)
{
	const struct perf_blackbox_notes *notes = at(offset, slot);

	if (!notes || notes->magic != PERF_BLACKBOX_NOTES_MAGIC ||
	    notes->crc != crc32(&notes->seq, sizeof(*notes) - offsetof(typeof(*notes), seq)) ||
	    notes->size > slot - sizeof(*notes) ||
	    notes->data_crc != crc32(notes + 1, notes->size))
		return NULL;
	return notes;
}

static void print_notes(const char *what, const void *data, __u64 size)
{
	printf("%s %llu %.*s\n", what, size, size < 64 ? (int)size : 64,
	       (const char *)data);
}

static void read_notes(const struct perf_blackbox_session *session)
{
	const struct perf_blackbox_notes *a, *b, *notes;
	const struct perf_blackbox_addition *add;
	__u64 slot = session->notes_size, pos;
	__u32 nr = 1;

	a = valid_notes(session->notes, slot);
	b = valid_notes(session->notes + slot, slot);
	notes = !a || (b && b->seq > a->seq) ? b : a;
	if (!notes)
		return;

	printf("notes of %s: base number %u\n", session->name, notes->seq);
	print_notes("base", notes + 1, notes->size);
	for (pos = sizeof(*notes) + notes->size;; pos += sizeof(*add) + add->size, nr++) {
		pos = (pos + 7) & ~7ULL;
		if (pos > slot || slot - pos < sizeof(*add))
			break;
		add = (const void *)notes + pos;
		if (add->magic != PERF_BLACKBOX_ADDITION_MAGIC ||
		    add->crc != crc32(&add->seq, sizeof(*add) - offsetof(typeof(*add), seq)) ||
		    add->seq != notes->seq || add->nr != nr ||
		    add->size > slot - pos - sizeof(*add) ||
		    add->data_crc != crc32(add + 1, add->size))
			break;
		print_notes("addition", add + 1, add->size);
	}
}

static void read_sessions(void)
{
	const struct perf_blackbox_session *session;
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_sessions; i++) {
		session = entry(super->sessions, super->session_size, i, &wrong);
		if (wrong)
			error("session %u is damaged", i);
		if (!session)
			continue;
		printf("session %u %s\n", i, session->name);
		read_notes(session);
	}
}

/* The event of that id that writes to the buffer, or NULL */
static const struct perf_blackbox_event *find_event(__u64 id, __u32 buffer)
{
	const struct perf_blackbox_event *event;
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_events; i++) {
		event = entry(super->events, super->event_size, i, &wrong);
		if (event && event->id == id && event->buffer == buffer)
			return event;
	}
	return NULL;
}

/* Is there an event of its own for each buffer? */
static void read_events(void)
{
	const struct perf_blackbox_event *event;
	const struct perf_event_attr *attr;
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_events; i++) {
		event = entry(super->events, super->event_size, i, &wrong);
		if (wrong)
			error("event %u is damaged", i);
		if (!event)
			continue;
		attr = (const void *)event->attr;
		printf("event %u id %llu session %u buffer %u cpu %d index %u %s %s\n", i,
		       event->id, event->session, event->buffer, event->cpu,
		       event->index, event->pmu, event->name);
		if (event->attr_size != attr->size || attr->size > sizeof(event->attr))
			error("event %u: attr of %u bytes", i, event->attr_size);
		if ((attr->sample_type & SAMPLE_NEEDS) != SAMPLE_NEEDS)
			error("event %u: sample type %llx", i, attr->sample_type);
	}
}

/* A ring buffer, laid out from the newest record to the oldest byte that is intact */
struct run {
	unsigned char	*bytes;
	__u64	size;
	__u64	behind;
};

static __u64 word(const unsigned char *p)
{
	return super->long_size == 8 ? *(__u64 *)p : *(__u32 *)p;
}

/* Which bytes are intact: see struct perf_blackbox_buffer. */
static bool cut(const struct perf_blackbox_buffer *buffer, struct run *run)
{
	const unsigned char *rb = at(buffer->rb, buffer->rb_size);
	const struct perf_event_mmap_page *page = at(buffer->user_page, sizeof(*page));
	const unsigned char *data = at(buffer->data, buffer->data_size);
	__u64 mask = super->long_size == 8 ? ~0ULL : ~0U, published, i;

	if (!rb || !page || !data || buffer->rb_head + super->long_size > buffer->rb_size ||
	    !(buffer->flags & PERF_BLACKBOX_BUFFER_BACKWARD) ||
	    buffer->data_size & (buffer->data_size - 1))
		return false;

	published = page->data_head;
	run->behind = (published - word(rb + buffer->rb_head)) & mask;
	run->size = run->behind < buffer->data_size ? buffer->data_size - run->behind : 0;
	if (run->size > (-published & mask))
		run->size = -published & mask;
	run->bytes = malloc(run->size + 1);
	for (i = 0; i < run->size; i++)
		run->bytes[i] = data[(published + i) & (buffer->data_size - 1)];
	return true;
}

/* The parts of a sample of our events, in the order in which the kernel writes them */
struct sample {
	struct perf_event_header	header;
	__u64			id;
	__u64			ip;
	__u32			pid, tid;
	__u64			time;
	__u32			cpu, res;
	__u64			period;
};

static void check_time(__u64 now, __u32 nr, __u64 *time)
{
	if (now > *time)
		error("buffer %u: time %llu before %llu", nr, now, *time);
	*time = now;
}

static void check_sample(const struct sample *s, const struct perf_blackbox_buffer *buffer,
			 __u32 nr, __u64 *time)
{
	const struct perf_blackbox_event *event = find_event(s->id, nr);
	const struct perf_event_attr *attr;
	__u64 type;

	if (!event) {
		error("buffer %u: a record of id %llu", nr, s->id);
		return;
	}
	attr = (const void *)event->attr;
	/* The cgroup is behind what is read here. */
	type = attr->sample_type & ~PERF_SAMPLE_CGROUP;
	if (type & ~SAMPLE_KNOWN || (type | PERF_SAMPLE_RAW) != SAMPLE_KNOWN)
		return;
	if (s->header.size < sizeof(*s)) {
		error("buffer %u: a sample of %u bytes", nr, s->header.size);
		return;
	}
	if ((__s32)s->cpu != buffer->cpu)
		error("buffer %u: CPU %u", nr, s->cpu);
	check_time(s->time, nr, time);
}

/* Other records end with what sample_id_all adds: 8 bytes for each bit of these. */
#define SAMPLE_ID_BEHIND_TIME	(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | \
				 PERF_SAMPLE_IDENTIFIER)

static void check_other(const struct perf_event_header *header, __u32 nr, __u64 *time)
{
	const __u64 *end = (const void *)header + header->size;
	const struct perf_blackbox_event *event = find_event(end[-1], nr);
	const struct perf_event_attr *attr;
	int behind;

	if (!event) {
		error("buffer %u: a record of id %llu", nr, end[-1]);
		return;
	}
	attr = (const void *)event->attr;
	behind = __builtin_popcountll(attr->sample_type & SAMPLE_ID_BEHIND_TIME);
	if (header->size < sizeof(*header) + 8 * (behind + 1))
		error("buffer %u: a record of %u bytes", nr, header->size);
	else
		check_time(end[-1 - behind], nr, time);
}

static void find_texts(const struct perf_event_header *header)
{
	unsigned int i;

	for (i = 0; i < nr_texts; i++) {
		if (memmem(header, header->size, texts[i], strlen(texts[i])))
			found[i]++;
	}
}

/* Of the kernel's struct perf_buffer; -1 if the place is not within it */
static long rb_field(const struct perf_blackbox_buffer *buffer, __u32 offset, __u32 size)
{
	const unsigned char *rb = at(buffer->rb, buffer->rb_size);

	if (!rb || offset % size || offset > buffer->rb_size || size > buffer->rb_size - offset)
		return -1;
	return size == 8 ? (long)*(__u64 *)(rb + offset) : (long)*(__u32 *)(rb + offset);
}

static void read_state(const struct perf_blackbox_buffer *buffer, __u32 nr)
{
	long paused = rb_field(buffer, buffer->rb_paused, 4);
	long nest = rb_field(buffer, buffer->rb_nest, 4);
	long lost = rb_field(buffer, buffer->rb_lost, super->long_size);

	if (paused < 0 || paused > 1 || nest < 0 || lost < 0)
		error("buffer %u: paused %ld, nest %ld, lost %ld", nr, paused, nest, lost);
	printf("state of %u cpu %d paused %ld nest %ld lost %ld\n", nr, buffer->cpu, paused, nest,
	       lost);
}

static void read_buffer(const struct perf_blackbox_buffer *buffer, __u32 nr)
{
	__u64 pos = 0, records = 0, newest = 0, time = ~0ULL;
	const struct perf_event_header *header;
	struct run run;

	if (!cut(buffer, &run)) {
		error("buffer %u: does not fit the image", nr);
		return;
	}

	for (; run.size - pos >= sizeof(*header); pos += header->size) {
		header = (const void *)run.bytes + pos;
		if (header->size < sizeof(*header) || header->size % 8) {
			error("buffer %u: a record of %u bytes at %llu", nr, header->size,
			      pos);
			break;
		}
		/* The oldest may be cut. */
		if (header->size > run.size - pos)
			break;
		records++;
		if (header->type == PERF_RECORD_SAMPLE)
			check_sample((const void *)header, buffer, nr, &time);
		else
			check_other(header, nr, &time);
		find_texts(header);
		if (records == 1)
			newest = time;
	}
	printf("buffer %u cpu %d records %llu bytes %llu behind %llu ", nr, buffer->cpu, records,
	       pos, run.behind);
	printf("newest %llu oldest %llu\n", records ? newest : 0, records ? time : 0);
	free(run.bytes);
}

/* As if a writer of the buffer had died amid a record of so many bytes */
static void die_in(const struct perf_blackbox_buffer *buffer, __u64 bytes)
{
	unsigned char *rb = image + buffer->rb, *data = image + buffer->data;
	__u64 head = word(rb + buffer->rb_head) - bytes, i;

	for (i = 0; i < bytes; i++)
		data[(head + i) & (buffer->data_size - 1)] = 0xff;
	memcpy(rb + buffer->rb_head, &head, super->long_size);
}

static int die_in_all(__u64 bytes, const char *copy)
{
	const struct perf_blackbox_buffer *buffer;
	FILE *f = fopen(copy, "w");
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_buffers; i++) {
		buffer = entry(super->buffers, super->buffer_size, i, &wrong);
		if (buffer)
			die_in(buffer, bytes);
	}
	if (!f || fwrite(image, image_size, 1, f) != 1 || fclose(f)) {
		perror(copy);
		return 3;
	}
	return 0;
}

/* The buffer of a member that was claimed is its opener's, and has records of who knows what. */
static bool is_of_session(__u32 buffer)
{
	const struct perf_blackbox_event *event;
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_events; i++) {
		event = entry(super->events, super->event_size, i, &wrong);
		if (event && event->buffer == buffer)
			return true;
	}
	return false;
}

static void read_buffers(void)
{
	const struct perf_blackbox_buffer *buffer;
	bool wrong;
	__u32 i;

	for (i = 0; i < super->max_buffers; i++) {
		buffer = entry(super->buffers, super->buffer_size, i, &wrong);
		if (wrong)
			error("buffer %u is damaged", i);
		if (!buffer || !is_of_session(i))
			continue;
		read_buffer(buffer, i);
		read_state(buffer, i);
	}
	for (i = 0; i < nr_texts; i++)
		printf("found %llu %s\n", found[i], texts[i]);
}

static bool load(const char *path)
{
	int fd = open(path, O_RDONLY);
	unsigned char *p;
	struct stat st;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st))
		return false;
	p = malloc(st.st_size + 1);
	while (n > 0 && image_size < (__u64)st.st_size) {
		n = read(fd, p + image_size, st.st_size - image_size);
		if (n > 0)
			image_size += n;
	}
	close(fd);
	image = p;
	return n >= 0;
}

int main(int argc, char **argv)
{
	const char *copy = NULL;
	__u64 bytes = 0;
	bool tasks = false;
	int opt, rc;

	while ((opt = getopt(argc, argv, "d:f:o:t")) != -1) {
		switch (opt) {
		case 'd':
			bytes = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			if (nr_texts == MAX_TEXTS)
				return 3;
			texts[nr_texts++] = optarg;
			break;
		case 'o':
			copy = optarg;
			break;
		case 't':
			tasks = true;
			break;
		default:
			return 3;
		}
	}
	if (argc != optind + 1)
		return 3;
	if (!load(argv[optind])) {
		perror(argv[optind]);
		return 3;
	}

	rc = read_super();
	if (rc)
		return rc;
	read_death(tasks);
	read_sessions();
	read_events();
	read_buffers();
	if (copy && !errors)
		return die_in_all(bytes, copy);
	return errors ? 1 : 0;
}
