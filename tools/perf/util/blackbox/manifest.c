// SPDX-License-Identifier: GPL-2.0
/*
 * OUT.json: how the machine died, what the recording holds, and what was dropped and why
 *
 * Members that manifests of the flight recorder have as well mean the same, see
 * ../flight/dump/manifest.c: trigger_time is the time of the death by the clock of the
 * records, and time is the same by the wall clock.
 */
#include "messages.h"
#include "recording.h"
#include "../flight/dump/files.h"
#include "../flight/dump/manifest.h"
#include "../header.h"
#include "../json-writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const states[] = {
	[0]			 = "unknown",
	[PERF_BLACKBOX_LIVE]	 = "reset",
	[PERF_BLACKBOX_CLEAN]	 = "clean",
	[PERF_BLACKBOX_DEAD]	 = "dead",
	[PERF_BLACKBOX_RELEASED] = "released",
};

/* The fate of the kernel, in a word. The state must be a valid one. */
const char *blackbox_image__state_name(const struct blackbox_image *image)
{
	return states[image->state];
}

/**
 * blackbox_image__reason - why the kernel died
 * @image: the image
 *
 * Return: the reason in words.
 */
const char *blackbox_image__reason(const struct blackbox_image *image)
{
	if (image->has_death && *image->death.reason)
		return image->death.reason;
	if (image->has_death && image->death.kind == PERF_BLACKBOX_DEATH_CRASH)
		return "the crash kernel was started";
	if (image->has_death)
		return "panic";
	if (image->state == PERF_BLACKBOX_CLEAN)
		return "none: it was shut down in order";
	return "reset without a message";
}

static void hex(char *to, const u8 *from, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		sprintf(to + 2 * i, "%02x", from[i]);
	to[2 * nr] = '\0';
}

/**
 * blackbox_session__death_time - when the kernel died
 * @s: a session of its image
 * @newest: time of the newest sample, by perf's clock, or 0
 * @perf: returns the time of the death by perf's clock; that of the newest sample if the
 *	kernel could not tell; 0 if nothing is known
 *
 * An image is made so early at boot that the wall clock may not have been set. The notes
 * know better.
 *
 * Return: the same by the wall clock, in ns.
 */
u64 blackbox_session__death_time(const struct blackbox_session *s, u64 newest, u64 *perf)
{
	const struct blackbox_image *image = s->image;
	const struct blackbox_note *note = s->nr_notes ? &s->notes[s->nr_notes - 1] : NULL;
	const struct perf_blackbox_clock *made = &image->super.clock;

	if (image->has_death) {
		*perf = image->death.clock.perf;
		return image->death.clock.real;
	}
	*perf = newest;
	if (!newest)
		return 0;
	if (note && note->real > made->real)
		return note->real + (newest - note->time);
	return newest > made->perf ? made->real + (newest - made->perf) : 0;
}

/* As in the names of dumps; NULL if it is not known. @buf has room for 32 bytes. */
const char *blackbox__wall_clock(u64 ns, char *buf, size_t size)
{
	return ns ? dump__print_time(ns, buf, size) : NULL;
}

static void write_clock(struct json_writer *w, const char *key,
			const struct perf_blackbox_clock *clock)
{
	json_writer__begin_object(w, key, JSON_STYLE__PADDED);
	json_writer__seconds(w, "perf", clock->perf, 9);
	json_writer__seconds(w, "monotonic", clock->mono, 9);
	json_writer__seconds(w, "realtime", clock->real, 9);
	json_writer__end(w);
}

static void write_image(struct json_writer *w, const struct blackbox_image *image)
{
	const struct perf_blackbox_super *super = &image->super;
	char id[2 * sizeof(super->build_id) + 1];

	json_writer__begin_object(w, "image", JSON_STYLE__LINES);
	json_writer__string(w, "place",
			    blackbox_image__is_scattered(image) ? "memory" : "region");
	json_writer__string(w, "label", super->label);
	json_writer__number(w, "generation", super->generation);
	json_writer__string(w, "state", blackbox_image__state_name(image));
	hex(id, super->boot_uuid, sizeof(super->boot_uuid));
	json_writer__string(w, "boot_uuid", id);
	json_writer__string(w, "kernel_version", super->kernel_version);
	hex(id, super->build_id, super->build_id_size);
	json_writer__string(w, "build_id", id);
	json_writer__number(w, "page_size", super->page_size);
	json_writer__number(w, "nr_cpus", super->nr_cpus);
	write_clock(w, "made", &super->clock);
	if (image->has_death)
		write_clock(w, "died", &image->death.clock);
	json_writer__number(w, "damaged", image->damaged);
	json_writer__bool(w, "tasks_damaged", image->tasks_bad);
	json_writer__bool(w, "tasks_left_out", image->has_death && image->death.tasks_lost);
	json_writer__bool(w, "truncated", image->size < super->image_size);
	json_writer__bool(w, "overlaps", image->overlaps);
	json_writer__end(w);
}

static void write_dropped(struct json_writer *w, const struct blackbox_recording *r)
{
	const struct blackbox_session *s = r->session;

	json_writer__begin_array(w, "dropped", JSON_STYLE__LINES);
	for (int i = BLACKBOX_OK + 1; i < BLACKBOX_DROP_MAX; i++) {
		if (!r->bytes_dropped[i])
			continue;
		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__string(w, "reason", blackbox_drop__name(i));
		json_writer__number(w, "bytes", r->bytes_dropped[i]);
		json_writer__number(w, "records", r->records_dropped[i]);
		json_writer__end(w);
	}
	json_writer__end(w);
	json_writer__number(w, "events_damaged", s->events_bad);
	json_writer__number(w, "buffers_damaged", s->buffers_bad);
	json_writer__number(w, "notes_damaged", s->notes_bad);
	json_writer__number(w, "notes_dropped", r->notes_dropped);
	json_writer__number(w, "formats_unknown", r->formats_unknown);
}

static void write_cpus(struct json_writer *w, const struct blackbox_recording *r)
{
	json_writer__begin_array(w, "cpus", JSON_STYLE__LINES);
	for (size_t i = 0; i < r->nr_cpus; i++) {
		const struct blackbox_cpu *cpu = &r->cpus[i];

		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__signed(w, "cpu", cpu->cpu);
		json_writer__seconds(w, "oldest", cpu->oldest, 9);
		json_writer__seconds(w, "newest", cpu->newest, 9);
		json_writer__number(w, "events", cpu->events);
		json_writer__number(w, "lost", cpu->lost);
		json_writer__number(w, "throttled", cpu->throttled);
		json_writer__number(w, "given_up", cpu->given_up);
		json_writer__string(w, "way", "image");
		json_writer__end(w);
	}
	json_writer__end(w);
}

/**
 * blackbox_manifest__write - write the manifest
 * @r: the recording
 * @file: its name
 * @bytes: its size
 * @f: where to write
 *
 * Return: 0 or -EIO.
 */
int blackbox_manifest__write(const struct blackbox_recording *r, const char *file, u64 bytes,
			     FILE *f)
{
	const struct blackbox_image *image = r->session->image;
	u64 died, real = blackbox_session__death_time(r->session, r->newest, &died);
	struct json_writer w;
	char buf[40];

	json_writer__init(&w, f);
	json_writer__begin_object(&w, NULL, JSON_STYLE__LINES);
	json_writer__string(&w, "file", file);
	json_writer__number(&w, "schema", MANIFEST_SCHEMA);
	json_writer__string(&w, "perf_version", perf_version_string);
	json_writer__string(&w, "time", blackbox__wall_clock(real, buf, sizeof(buf)));
	json_writer__seconds(&w, "trigger_time", died, 9);
	json_writer__string(&w, "kernel", image->super.release);
	json_writer__string(&w, "trigger", "death");
	json_writer__string(&w, "reason", blackbox_image__reason(image));
	if (image->has_death) {
		json_writer__signed(&w, "trigger_pid", image->death.pid);
		json_writer__string(&w, "trigger_comm", image->death.comm);
		json_writer__signed(&w, "trigger_cpu", image->death.cpu);
	}
	json_writer__string(&w, "action", "recover");
	json_writer__seconds(&w, "window", r->newest - r->oldest, 9);
	json_writer__seconds(&w, "oldest", r->oldest, 9);
	json_writer__seconds(&w, "newest", r->newest, 9);
	json_writer__number(&w, "events", r->events);
	json_writer__number(&w, "lost", r->lost);
	json_writer__number(&w, "throttled", r->throttled);
	json_writer__number(&w, "given_up", r->given_up);
	json_writer__number(&w, "unresolved", r->unresolved);
	json_writer__number(&w, "tasks", r->nr_told);
	json_writer__string(&w, "session", r->session->entry.name);
	json_writer__number(&w, "bytes", bytes);
	write_image(&w, image);
	if (r->messages)
		blackbox_messages__write(r->messages, &w);
	write_dropped(&w, r);
	write_cpus(&w, r);
	json_writer__end(&w);
	return ferror(f) || fflush(f) ? -EIO : 0;
}
