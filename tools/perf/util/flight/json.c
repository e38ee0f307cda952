// SPDX-License-Identifier: GPL-2.0
/*
 * What manifests and the answers on the socket share
 *
 * JSON is UTF-8, the names of files are any bytes: what is no character of UTF-8 is
 * written as U+FFFD, byte by byte.
 */
#include "json.h"

#include <linux/types.h>

/* Bytes of the character that @str begins with; 0 if it is none. */
static int utf8_len(const char *str)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)str;
	int len = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
	u32 c = *s & (0x7f >> len);

	if (len < 2)
		return len;
	for (int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Not longer than need be, no half of a pair, nothing beyond Unicode. */
	if (c < least[len] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff || *s >= 0xf8)
		return 0;
	return len;
}

/**
 * json__put_utf8 - write one character
 * @f: where
 * @str: begins with it, and is not empty
 *
 * As it is, or as U+FFFD if it is none.
 *
 * Return: how many bytes of @str that were.
 */
int json__put_utf8(FILE *f, const char *str)
{
	int len = utf8_len(str);

	if (!len) {
		fputs("\xef\xbf\xbd", f);
		return 1;
	}
	fprintf(f, "%.*s", len, str);
	return len;
}

/**
 * json__put_string - write a string, with its quotes
 * @f: where
 * @str: the string; it need not be UTF-8
 */
void json__put_string(FILE *f, const char *str)
{
	fputc('"', f);
	while (*str) {
		unsigned char c = *str;

		if (c == '"' || c == '\\') {
			fprintf(f, "\\%c", c);
			str++;
		} else if (c < ' ' || c == 0x7f) {
			fprintf(f, "\\u%04x", c);
			str++;
		} else {
			str += json__put_utf8(f, str);
		}
	}
	fputc('"', f);
}
