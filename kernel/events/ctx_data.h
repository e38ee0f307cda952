/* SPDX-License-Identifier: GPL-2.0 */
/* Per-task PMU data: what the files of ctx_data*.c share */
#ifndef _KERNEL_EVENTS_CTX_DATA_H
#define _KERNEL_EVENTS_CTX_DATA_H

#include <linux/llist.h>
#include <linux/types.h>

struct perf_event;
struct task_struct;
struct work_struct;

/* ctx_data_scope.c */
int perf_ctx_scope_add(struct perf_event *event);
void perf_ctx_scope_del(struct perf_event *event);
bool perf_ctx_scope_has(struct task_struct *task, int cpu);
bool perf_ctx_scope_is_narrow(void);

/**
 * struct perf_ctx_node - what a task has while it is PENDING
 * @work:	its task_work
 * @entry:	entry in the pool
 * @cpu:	CPU of the pool
 * @delay:	BACKOFF lasts 2^delay seconds if the allocation fails
 */
struct perf_ctx_node {
	union {
		struct callback_head	work;
		struct llist_node	entry;
	};
	int				cpu;
	unsigned int			delay;
};

/* ctx_data_node.c */
int perf_ctx_nodes_fill(int cpu, struct work_struct *work);
void perf_ctx_nodes_refill(void);
struct perf_ctx_node *perf_ctx_node_take(void);
void perf_ctx_node_return(struct perf_ctx_node *node);
void perf_ctx_nodes_free(void);

/* ctx_data.c */
unsigned long perf_ctx_data_tasks(void);
unsigned long perf_ctx_data_size(void);
unsigned long perf_ctx_data_nr_failures(void);

#endif /* _KERNEL_EVENTS_CTX_DATA_H */
