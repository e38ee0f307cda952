// SPDX-License-Identifier: GPL-2.0
/*
 * Positions of words in a record: task, time, event and CPU, without parsing the rest
 *
 * A sample begins with the words that perf_event_attr::sample_type asks for, in the order
 * of sample_words[]. With sample_id_all, other records end with a sample_id, in the order
 * of id_words[]. Both are arrays of 64-bit words; each word is one number, but for TID and
 * CPU, which are two of 32 bits, the first at the lower address. The value of such a word
 * therefore depends on the byte order of the machine, and its address does not:
 *
 *	address		0  1  2  3	4  5  6  7
 *	TID		pid		tid
 *	CPU		cpu		reserved
 *	as a number	lower half	upper half	of a little-endian machine
 *			upper half	lower half	of a big-endian machine
 *
 * perf_session swaps the records of a machine of the other byte order as 64-bit words. That
 * is right for the numbers, and exchanges the halves of the others.
 *
 * evsel__parse_sample() knows all this as well. It parses all of a sample and needs an
 * evsel; this is for readers that visit every record for a word or two, or that have no
 * more than the attributes in a file. Words are placed relative to the record, which need
 * not be aligned.
 */
#include "sample-layout.h"
#include "event.h"

#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <string.h>

/* Those that come before the first field of variable size. */
static const u64 sample_words[] = {
	PERF_SAMPLE_IDENTIFIER,
	PERF_SAMPLE_IP,
	PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR,
	PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,
	PERF_SAMPLE_CPU,
};

static const u64 id_words[] = {
	PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,
	PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,
	PERF_SAMPLE_CPU,
	PERF_SAMPLE_IDENTIFIER,
};

static int find_word(u64 sample_type, u64 bit)
{
	switch (bit) {
	case PERF_SAMPLE_IDENTIFIER:
		return SAMPLE_WORD__ID;
	case PERF_SAMPLE_ID:
		return sample_type & PERF_SAMPLE_IDENTIFIER ? -1 : SAMPLE_WORD__ID;
	case PERF_SAMPLE_TID:
		return SAMPLE_WORD__TID;
	case PERF_SAMPLE_TIME:
		return SAMPLE_WORD__TIME;
	case PERF_SAMPLE_CPU:
		return SAMPLE_WORD__CPU;
	default:
		return -1;
	}
}

/* Return: number of words. */
static int place_words(s8 *places, u64 sample_type, const u64 *bits, size_t nr_bits)
{
	int nr = 0;

	memset(places, -1, SAMPLE_WORD__MAX);
	for (size_t i = 0; i < nr_bits; i++) {
		int word = find_word(sample_type, bits[i]);

		if (!(sample_type & bits[i]))
			continue;
		if (word >= 0)
			places[word] = nr;
		nr++;
	}
	return nr;
}

/**
 * sample_layout__init - find the places of the words
 * @layout: to fill in
 * @attr: attributes of the event
 * @swapped: the records are of a machine of the other byte order, and perf_session has
 *	swapped them, see evsel::needs_swap
 */
void sample_layout__init(struct sample_layout *layout, const struct perf_event_attr *attr,
			 bool swapped)
{
	u64 id_type = attr->sample_id_all ? attr->sample_type : 0;

	place_words(layout->sample, attr->sample_type, sample_words, ARRAY_SIZE(sample_words));
	layout->id_size = sizeof(u64) * place_words(layout->id, id_type, id_words,
						    ARRAY_SIZE(id_words));
	layout->swapped = swapped;
}

/**
 * sample_layout__is_same - records of both have a word in the same place
 * @a: one layout
 * @b: the other one
 * @word: which word; neither may have it
 */
bool sample_layout__is_same(const struct sample_layout *a, const struct sample_layout *b,
			    enum sample_word word)
{
	return a->sample[word] == b->sample[word] && a->id[word] == b->id[word] &&
	       a->id_size == b->id_size && a->swapped == b->swapped;
}

/* Words from the id in a sample_id to the end of the record; 0: it has none */
static int words_from_id(const struct sample_layout *layout)
{
	int place = layout->id[SAMPLE_WORD__ID];

	return place < 0 ? 0 : (int)(layout->id_size / sizeof(u64)) - place;
}

/**
 * sample_layout__has_same_id - the ids in records of both are found in the same way
 * @a: one layout
 * @b: the other one
 *
 * The id of a sample is found from its start, that of another record from its end. The
 * words between may differ. Neither may have an id.
 */
bool sample_layout__has_same_id(const struct sample_layout *a, const struct sample_layout *b)
{
	return a->sample[SAMPLE_WORD__ID] == b->sample[SAMPLE_WORD__ID] &&
	       words_from_id(a) == words_from_id(b);
}

/**
 * sample_layout__offset - where a word of a record is
 * @layout: of the record's event
 * @word: which word
 * @type: type of the record
 * @size: bytes of the record
 *
 * Return: bytes from the start of the record, or -1 if it does not have that word.
 */
int sample_layout__offset(const struct sample_layout *layout, enum sample_word word,
			  u32 type, size_t size)
{
	size_t start = sizeof(struct perf_event_header), offset;
	int place = layout->sample[word];

	if (type != PERF_RECORD_SAMPLE) {
		if (size < start + layout->id_size)
			return -1;
		start = size - layout->id_size;
		place = layout->id[word];
	}
	offset = start + place * sizeof(u64);
	return place >= 0 && offset + sizeof(u64) <= size ? (int)offset : -1;
}

/**
 * sample_layout__id_offset - where the id of a record is whose event is not known yet
 * @layout: of any event of its buffer; all have the same id, see sample_layout__has_same_id()
 * @type: type of the record
 * @size: bytes of the record
 *
 * The sample_id of the record's event may be shorter than that of @layout. perf_session
 * finds the event in the same way, see evlist__event2evsel().
 *
 * Return: bytes from the start of the record, or -1 if it has no id.
 */
int sample_layout__id_offset(const struct sample_layout *layout, u32 type, size_t size)
{
	size_t start = sizeof(struct perf_event_header);
	int words = size < start ? 0 : (size - start) / sizeof(u64);
	int place = layout->sample[SAMPLE_WORD__ID];

	if (type != PERF_RECORD_SAMPLE)
		place = words_from_id(layout) ? words - words_from_id(layout) : -1;
	return place >= 0 && place < words ? (int)(start + place * sizeof(u64)) : -1;
}

static const void *find(const struct sample_layout *layout, enum sample_word word,
			const union perf_event *event)
{
	int offset = sample_layout__offset(layout, word, event->header.type, event->header.size);

	return offset < 0 ? NULL : (const void *)event + offset;
}

/* The first of the two numbers in a word. */
static bool get_first(const struct sample_layout *layout, enum sample_word word,
		      const union perf_event *event, u32 *value)
{
	const void *p = find(layout, word, event);

	if (p)
		memcpy(value, layout->swapped ? p + sizeof(*value) : p, sizeof(*value));
	return p;
}

/**
 * sample_layout__pid - the process that a record is about
 * @layout: of the record's event
 * @event: the record
 * @pid: where to store it
 *
 * Return: whether the record says so.
 */
bool sample_layout__pid(const struct sample_layout *layout, const union perf_event *event,
			u32 *pid)
{
	return get_first(layout, SAMPLE_WORD__TID, event, pid);
}

/**
 * sample_layout__time - when a record was made
 * @layout: of the record's event
 * @event: the record
 * @time: where to store it
 *
 * Return: whether the record says so.
 */
bool sample_layout__time(const struct sample_layout *layout, const union perf_event *event,
			 u64 *time)
{
	const void *p = find(layout, SAMPLE_WORD__TIME, event);

	if (p)
		memcpy(time, p, sizeof(*time));
	return p;
}

/**
 * sample_layout__cpu - the CPU on which a record was made
 * @layout: of the record's event
 * @event: the record
 * @cpu: where to store it
 *
 * Return: whether the record says so.
 */
bool sample_layout__cpu(const struct sample_layout *layout, const union perf_event *event,
			u32 *cpu)
{
	return get_first(layout, SAMPLE_WORD__CPU, event, cpu);
}
