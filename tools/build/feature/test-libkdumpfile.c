// SPDX-License-Identifier: GPL-2.0
#include <libkdumpfile/kdumpfile.h>

int main(void)
{
	kdump_ctx_t *ctx = kdump_new();
	kdump_attr_t attr = { .type = KDUMP_BITMAP };

	return kdump_get_typed_attr(ctx, KDUMP_ATTR_MEMORY_PAGEMAP, &attr) == KDUMP_OK;
}
