// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the side-band that goes back to the system in steps
 *
 * free() gives the top of the heap back as soon as it is large enough, however large it is then.
 * If the last one of many processes lies above what all others have left, this takes 40 ms for
 * 175 MB, and no buffer is read meanwhile. Therefore a small allocation, a step, stays in the
 * heap after each STEP bytes. What lies below a step stays as well. With each pass of the
 * recorder, the highest step goes if nothing is left above it, and the next part of the heap
 * with it. So a pass gives back two parts at most: what it frees itself above the highest step,
 * and what is above the next one.
 *
 * Steps are in order of address; each one points to the next lower one. What malloc() takes from
 * elsewhere, such as large tables, needs none. A step that stays longer than necessary, as
 * something else was allocated above it, keeps nothing from being allocated again.
 *
 * A step at the top of a heap that grows has nothing below it that is free. It is put back.
 */
#include "sideband-memory.h"

#include <linux/kernel.h>
#include <malloc.h>
#include <unistd.h>

/* 2048 pages: less than 2 ms */
#define STEP		(8UL * 1024 * 1024)

/* More than what free() keeps for the next malloc() of the same size, instead of merging it. */
#define STEP_SIZE	4096

/* Try again after so much if malloc() has put the step further down. */
#define RETRY		(STEP / 16)

/* What malloc() may keep at the top of the heap, and then some */
#define SLACK		(512UL * 1024)

struct heap_step {
	struct heap_step *below;
};

static unsigned long heap_end(void)
{
	return (unsigned long)sbrk(0);
}

/**
 * sideband_memory__init - begin without any memory
 * @m: the memory
 * @limit: maximum in bytes
 * @stats: what is used, and how often the limit was reached
 *
 * Changes how malloc() works for the whole process, where it is that of glibc.
 */
void sideband_memory__init(struct sideband_memory *m, size_t limit, struct sideband_stats *stats)
{
	m->limit = limit;
	m->stats = stats;
	m->step = NULL;
	m->next_step = 0;
#ifdef __GLIBC__
	/*
	 * It may grow to 64 MiB otherwise, and what is above a step would stay. This also keeps
	 * the size from which on malloc() calls mmap() at 128 KiB.
	 */
	mallopt(M_TRIM_THRESHOLD, SLACK / 2);
	/*
	 * Without fast bins, small allocations are merged when they are freed, and not all at once
	 * some day. Up to seven of each size are still kept, and may keep the top from going.
	 */
	mallopt(M_MXFAST, 0);
#endif
}

static void push_step(struct sideband_memory *m, struct heap_step *step)
{
	step->below = m->step;
	m->step = step;
	m->next_step = (unsigned long)step + STEP;
}

/**
 * sideband_memory__add_step - add a step, if the top of the heap is far above the last one
 * @m: the memory
 * @p: an allocation at or above @m->next_step
 * @size: its size in bytes
 */
void sideband_memory__add_step(struct sideband_memory *m, const void *p, size_t size)
{
	struct heap_step *step;

	if ((unsigned long)p >= heap_end())
		return;
	/* There was no room for @p further down, so there is none for this. */
	step = malloc(max_t(size_t, STEP_SIZE, size));
	if (!step || (unsigned long)step < m->next_step || (unsigned long)step >= heap_end()) {
		m->next_step = (unsigned long)p + RETRY;
		free(step);
		return;
	}
	push_step(m, step);
}

static void remove_step(struct sideband_memory *m)
{
	struct heap_step *step = m->step;

	m->step = step->below;
	m->next_step = m->step ? (unsigned long)m->step + STEP : 0;
	free(step);
}

/**
 * sideband_memory__give_back - give a part of what is free back to the system
 * @m: the memory
 */
void sideband_memory__give_back(struct sideband_memory *m)
{
	unsigned long end = heap_end(), place = (unsigned long)m->step;
	struct heap_step *step;

	if (!m->step || end - place >= SLACK)
		return;
	remove_step(m);
	if (heap_end() != end)
		return;
	/* Nothing was free. Mostly this is the same place. */
	step = malloc(STEP_SIZE);
	if ((unsigned long)step == place)
		push_step(m, step);
	else
		free(step);
}

/**
 * sideband_memory__exit - no memory is used any more
 * @m: the memory
 */
void sideband_memory__exit(struct sideband_memory *m)
{
	while (m->step)
		remove_step(m);
}
