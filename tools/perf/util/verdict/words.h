/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_WORDS_H
#define __PERF_VERDICT_WORDS_H

#include "findings.h"

struct strbuf;

extern const char *const verdict_kinds[];
extern const char *const verdict_roots[];
extern const char *const verdict_confidences[];
extern const char *const verdict_classes[];

void verdict_words__time(struct strbuf *sb, u64 ns);
void verdict_words__name(struct strbuf *sb, const char *name);
bool verdict_words__container(struct strbuf *sb, const struct verdict_history *h,
			      const struct verdict_task *t);
void verdict_words__task(struct strbuf *sb, const struct verdict_task *t);
void verdict_words__sentence(struct strbuf *sb, const struct verdict_history *h,
			     const struct verdict_finding *f);
void verdict_words__link(struct strbuf *sb, const struct verdict_history *h,
			 const struct verdict_finding *f, int nr);
void verdict_words__missing(const struct verdict_history *h,
			    void (*tell)(void *ctx, const char *events, const char *what),
			    void *ctx);
bool verdict_words__broken(struct strbuf *sb, const struct verdict_history *h);
bool verdict_words__overhead(struct strbuf *sb, const char *manifest,
			     const struct verdict_history *h);
bool verdict_words__shares(struct strbuf *sb, const char *manifest,
			   const struct verdict_history *h);

#endif /* __PERF_VERDICT_WORDS_H */
