// SPDX-License-Identifier: GPL-2.0
/* A 32-bit reader on a 64-bit kernel; the Makefile builds this with -m32. */
#include "rb_backward.c"
