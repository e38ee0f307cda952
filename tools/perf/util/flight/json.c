// SPDX-License-Identifier: GPL-2.0
/* What manifests and the answers on the socket share. */
#include "json.h"

/* With its quotes. */
void json__put_string(FILE *f, const char *str)
{
	fputc('"', f);
	for (; *str; str++) {
		unsigned char c = *str;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}
