// SPDX-License-Identifier: GPL-2.0
/*
 * Formats of tracepoints
 *
 * The section HEADER_TRACING_DATA is written anew, from what is known:
 *
 *	17 08 44 "tracing" VERSION		byte order, size of long, page size
 *	"header_page"				fields of a page, as perf takes the size of a
 *						long from it
 *	"header_event"				empty
 *	formats of ftrace			none
 *	systems, and the formats of each	see below
 *	kallsyms, printk formats		empty
 *	names of tasks (saved_cmdlines)		empty
 *
 * The text of a format is written anew, too. It has the fields that are known (known.c), if
 * they are declared as the kernel declares them, and a print format that is made of these, of
 * whose old text only the letters of the states of tasks are read. If
 * the tracepoint is not known, or a user has defined it, its system and its name become
 * tokens, and only the fields that all tracepoints have are left. The first format with an id
 * is the one that counts.
 */
#include "formats.h"
#include "words.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME		128
#define MAX_FIELDS		256

/* Kernels have about 3,000 tracepoints. */
#define MAX_FORMATS		16384

#define HEADER_PAGE	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"	\
			"\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"	\
			"\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:1;\n"

/* The data of a sample have at least this size. */
#define FORMAT_MIN		8

#define COMM_SIZE		16
#define LETTERS_MAX		16

/* Bits of the state of a task, and the text of one of them */
#define MAX_STATES		32
#define MAX_STATE		32

static const char magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };

/* What is read; after the end there is nothing more to read. */
struct input {
	const char	*data;
	size_t		left;
};

static const void *take(struct input *in, size_t size)
{
	const void *data = in->data;

	if (size > in->left)
		return NULL;
	in->data += size;
	in->left -= size;
	return data;
}

static bool take_u32(struct input *in, u32 *value)
{
	const void *data = take(in, sizeof(*value));

	if (data)
		memcpy(value, data, sizeof(*value));
	return data;
}

static bool take_sized(struct input *in, struct input *what)
{
	const void *data = take(in, sizeof(u64));
	u64 size;

	if (!data)
		return false;
	memcpy(&size, data, sizeof(size));
	if (size > in->left)
		return false;
	what->left = size;
	what->data = take(in, size);
	return true;
}

static bool take_text(struct input *in, const char **text)
{
	size_t len = strnlen(in->data, in->left);

	if (len == in->left)
		return false;
	*text = take(in, len + 1);
	return true;
}

static bool take_mark(struct input *in, const char *mark, size_t size)
{
	const void *data = take(in, size);

	return data && !memcmp(data, mark, size);
}

/* A line, without its end, which may be missing in the last one */
static bool take_line(struct input *in, struct input *line)
{
	const char *end = in->left ? memchr(in->data, '\n', in->left) : NULL;

	if (!in->left)
		return false;
	line->data = in->data;
	line->left = end ? (size_t)(end - in->data) : in->left;
	take(in, line->left + !!end);
	return true;
}

static bool begins_with(const struct input *line, const char *text)
{
	size_t len = strlen(text);

	return line->left >= len && !memcmp(line->data, text, len);
}

/* Numbers up to 999,999,999 */
static bool parse_number(struct input *in, const char *before, u64 *number)
{
	size_t digits = 0;

	if (!begins_with(in, before))
		return false;
	take(in, strlen(before));
	for (*number = 0; in->left && isdigit(*in->data) && digits < 9; digits++) {
		*number = *number * 10 + (*in->data - '0');
		take(in, 1);
	}
	return digits;
}

/* A field */

static bool is_of_name(char c)
{
	return isalnum(c) || c == '_';
}

/* The name at the end of a declaration; [N] behind it makes it an array. */
static bool parse_name(const char *text, size_t len, char *name, bool *is_array)
{
	size_t end = len, start;

	*is_array = false;
	if (len && text[len - 1] == ']') {
		const char *open = memrchr(text, '[', len);

		if (!open)
			return false;
		*is_array = true;
		end = open - text;
	}
	for (start = end; start && is_of_name(text[start - 1]); start--)
		;
	if (start == end || end - start >= MAX_NAME)
		return false;
	memcpy(name, text + start, end - start);
	name[end - start] = '\0';
	return true;
}

static bool is_number(const struct redact_field *field)
{
	return field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8;
}

/* The types that the kernel's own tracepoints declare such fields with */
static const char *find_type(const struct input *text)
{
	static const char *const types[] = {
		"char", "unsigned char", "short", "unsigned short", "int", "unsigned int",
		"unsigned", "long", "unsigned long", "long long", "unsigned long long",
		"bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "pid_t", "dev_t",
		"gfp_t", "sector_t", "size_t", "void *", "__data_loc char[]",
		"__rel_loc char[]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strlen(types[i]) == text->left && begins_with(text, types[i]))
			return types[i];
	}
	return NULL;
}

/* What a line of a format declares */
struct declared {
	struct redact_field	field;
	const char		*type;
	char			name[MAX_NAME];
	u64			elements;
	u64			is_signed;
	bool			is_array;
	bool			is_dynamic;
};

/* Is the field what its name says? */
static bool is_as_known(const struct declared *d)
{
	const struct redact_field *field = &d->field;
	bool is_of_chars = d->is_array && !d->is_dynamic && !strcmp(d->type, "char");

	switch (field->how) {
	case REDACT_HOW_NUMBER:
	case REDACT_HOW_STATE:
		return !d->is_dynamic && !d->is_array && is_number(field);
	case REDACT_HOW_ADDRESS:
		return !d->is_dynamic && !d->is_array && field->size == sizeof(u64);
	case REDACT_HOW_COMM:
		return is_of_chars && field->size == COMM_SIZE;
	case REDACT_HOW_LETTERS:
		return is_of_chars && field->size && field->size <= LETTERS_MAX;
	case REDACT_HOW_COMM_TEXT:
	case REDACT_HOW_FILE:
	case REDACT_HOW_DEVICE:
		return d->is_dynamic && !d->is_array;
	case REDACT_HOW_ZERO:
		return !d->is_dynamic && (!d->is_array || d->elements);
	case REDACT_HOW_UNKNOWN:
	default:
		return false;
	}
}

/* char comm[16] */
static bool parse_declaration(struct declared *d, struct input text)
{
	if (!parse_name(text.data, text.left, d->name, &d->is_array))
		return false;
	if (d->is_array) {
		struct input inside = text;
		const char *open = memrchr(text.data, '[', text.left);

		take(&inside, open - text.data);
		/* The length may be the name of a constant. */
		if (!parse_number(&inside, "[", &d->elements) || !begins_with(&inside, "]"))
			d->elements = 0;
		text.left = open - text.data;
	}
	text.left -= strlen(d->name);
	while (text.left && text.data[text.left - 1] == ' ')
		text.left--;
	d->type = find_type(&text);
	if (!d->type)
		return false;
	d->field.is_relative = strstarts(d->type, "__rel_loc ");
	d->is_dynamic = d->field.is_relative || strstarts(d->type, "__data_loc ");
	return true;
}

/*
 * <tab>field:char comm[16];<tab>offset:8;<tab>size:16;<tab>signed:0;
 * Return: false if the field is not known.
 */
static bool parse_field(struct input line, const char *known, struct declared *d)
{
	struct input text;
	const char *end;
	u64 offset, size;

	*d = (struct declared) {};
	take(&line, strlen("\tfield:"));
	end = line.left ? memchr(line.data, ';', line.left) : NULL;
	if (!end)
		return false;
	text.data = line.data;
	text.left = end - line.data;
	take(&line, text.left);
	if (!parse_declaration(d, text) ||
	    !parse_number(&line, ";\toffset:", &offset) ||
	    !parse_number(&line, ";\tsize:", &size) || offset > UINT16_MAX || size > UINT16_MAX)
		return false;
	if (!parse_number(&line, ";\tsigned:", &d->is_signed))
		d->is_signed = 0;
	if (d->is_dynamic && size != sizeof(u32))
		return false;
	d->field.offset = offset;
	d->field.size = size;
	d->field.how = redact_known__how(known, d->name);
	if (d->field.how == REDACT_HOW_COMM && d->is_dynamic)
		d->field.how = REDACT_HOW_COMM_TEXT;
	return is_as_known(d);
}

/* A format */

/* What is known of one while its text is read */
struct parsed {
	struct redact_format	format;
	const char		*known;
	char			name[MAX_NAME];
	char			system[MAX_NAME];
	bool			has_id;
	bool			is_of_user;
};

static int add_field(struct redact_format *format, const struct redact_field *field)
{
	struct redact_field *fields;

	if (format->nr == MAX_FIELDS)
		return -EBADMSG;
	fields = reallocarray(format->fields, format->nr + 1, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	format->fields = fields;
	fields[format->nr++] = *field;
	format->size = max(format->size, (size_t)field->offset + field->size);
	return 0;
}

/*
 * A tracepoint that a user defines has a system and a name of the user's choice. Probes have
 * fields of their own. For those without, on tracepoints (eprobes), the kernel makes a print
 * format that begins with a blank.
 */
static bool is_of_user(const struct input *line)
{
	static const char field[] = " __probe_";

	if (begins_with(line, "\tfield:"))
		return memmem(line->data, line->left, field, strlen(field));
	return begins_with(line, "print fmt: \" ");
}

static void parse_head(struct parsed *p, struct input text)
{
	struct input line;

	while (take_line(&text, &line)) {
		p->is_of_user |= is_of_user(&line);
		if (begins_with(&line, "print fmt:"))
			break;
		if (!*p->name && begins_with(&line, "name: ")) {
			take(&line, strlen("name: "));
			line.left = min(line.left, sizeof(p->name) - 1);
			memcpy(p->name, line.data, line.left);
		} else if (!p->has_id) {
			p->has_id = parse_number(&line, "ID: ", &p->format.id);
		}
	}
	if (!p->is_of_user)
		p->known = redact_known__fields(p->system, p->name);
}

static void put_declaration(const struct declared *d, FILE *f)
{
	const struct redact_field *field = &d->field;

	fprintf(f, "\tfield:%s %s", d->type, d->name);
	if (d->is_array)
		fprintf(f, "[%u]", field->how == REDACT_HOW_ZERO ? (unsigned int)d->elements :
			field->size);
	fprintf(f, ";\toffset:%u;\tsize:%u;\tsigned:%u;\n", field->offset, field->size,
		!!d->is_signed);
}

/*
 * { 0x00000002, "D" }
 * Takes a bit and its letter, with what is before them.
 */
static bool take_state(struct input *in, unsigned long *bit, char *letter)
{
	const char *open = in->left ? memchr(in->data, '{', in->left) : NULL;
	char text[MAX_STATE] = "";
	int len = 0;

	if (!open)
		return false;
	take(in, open - in->data);
	memcpy(text, in->data, min(in->left, sizeof(text) - 1));
	if (sscanf(text, "{ %li, \"%c\" }%n", (long *)bit, letter, &len) != 2 || !len)
		return false;
	take(in, len);
	return *bit && !(*bit & (*bit - 1)) && isalpha(*letter);
}

/* Which bits of a state have which letters follows the kernel, and perf sched looks it up. */
static void put_states(const char *name, struct input print, FILE *args)
{
	static const char flags[] = "__print_flags(REC->";
	const char *begin = print.left ? memmem(print.data, print.left, flags, strlen(flags)) :
			    NULL;
	const char *before = "";
	unsigned long bit;
	char letter;

	fprintf(args, ", REC->%s ? __print_flags(REC->%s, \"|\"", name, name);
	if (begin) {
		take(&print, begin - print.data);
		before = ", ";
	}
	for (int i = 0; begin && i < MAX_STATES && take_state(&print, &bit, &letter); i++)
		fprintf(args, "%s{ 0x%lx, \"%c\" }", before, bit, letter);
	fputs(") : \"R\"", args);
}

/* @print: the format in the recording; @args: what belongs to the new one, behind it */
static void put_conversion(const struct declared *d, struct input print, FILE *f, FILE *args)
{
	const char *before = ftell(f) ? " " : "", *name = d->name;

	switch (d->field.how) {
	case REDACT_HOW_NUMBER:
		fprintf(f, "%s%s=%%%s%s", before, name, d->field.size == sizeof(u64) ? "ll" : "",
			d->is_signed ? "d" : "u");
		fprintf(args, ", REC->%s", name);
		break;
	case REDACT_HOW_STATE:
		fprintf(f, "%s%s=%%s", before, name);
		put_states(name, print, args);
		break;
	case REDACT_HOW_ADDRESS:
		fprintf(f, "%s%s=0x%%llx", before, name);
		fprintf(args, ", REC->%s", name);
		break;
	case REDACT_HOW_COMM:
	case REDACT_HOW_LETTERS:
		fprintf(f, "%s%s=%%s", before, name);
		fprintf(args, ", REC->%s", name);
		break;
	case REDACT_HOW_COMM_TEXT:
	case REDACT_HOW_FILE:
	case REDACT_HOW_DEVICE:
		fprintf(f, "%s%s=%%s", before, name);
		fprintf(args, ", %s(%s)", d->field.is_relative ? "__get_rel_str" : "__get_str",
			name);
		break;
	case REDACT_HOW_UNKNOWN:
	case REDACT_HOW_ZERO:
	default:
		break;
	}
}

/* The text of a format, as it is written, in parts */
struct made {
	FILE	*fields;
	FILE	*print;
	FILE	*args;
	char	*texts[3];
	size_t	sizes[3];
};

static int put_fields(struct parsed *p, struct input text, const struct made *made)
{
	static const char mark[] = "\nprint fmt:";
	const char *begin = memmem(text.data, text.left, mark, strlen(mark));
	struct input print = { .data = begin, .left = begin ? text.data + text.left - begin : 0 };
	bool is_common = true;
	struct declared d;
	struct input line;
	int err = 0;

	while (!err && take_line(&text, &line) && !begins_with(&line, "print fmt:")) {
		if (!begins_with(&line, "\tfield:") || !parse_field(line, p->known, &d))
			continue;
		err = add_field(&p->format, &d.field);
		/* An empty line tells which fields all tracepoints have. */
		if (is_common && !strstarts(d.name, "common_")) {
			is_common = false;
			fputc('\n', made->fields);
		}
		put_declaration(&d, made->fields);
		if (!is_common)
			put_conversion(&d, print, made->print, made->args);
	}
	if (is_common)
		fputc('\n', made->fields);
	p->format.size = max_t(size_t, p->format.size, FORMAT_MIN);
	return err;
}

static int close_made(struct made *made)
{
	FILE *files[] = { made->fields, made->print, made->args };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!files[i] || fclose(files[i]))
			err = -ENOMEM;
	}
	return err;
}

static void free_made(struct made *made)
{
	for (size_t i = 0; i < ARRAY_SIZE(made->texts); i++)
		free(made->texts[i]);
}

/* Return: 0; -EBADMSG; -ENOMEM. */
static int make_text(struct parsed *p, const struct redact_words *w, struct input text,
		     char **whole)
{
	char name[REDACT_TEXT_MAX];
	struct made made = {};
	int err = -ENOMEM;

	made.fields = open_memstream(&made.texts[0], &made.sizes[0]);
	made.print = open_memstream(&made.texts[1], &made.sizes[1]);
	made.args = open_memstream(&made.texts[2], &made.sizes[2]);
	if (made.fields && made.print && made.args)
		err = put_fields(p, text, &made);
	err = close_made(&made) ?: err;
	if (p->known)
		scnprintf(name, sizeof(name), "%s", p->name);
	else
		redact_words__put(w, REDACT_EVENT, p->name, sizeof(p->name), name);
	if (!err && asprintf(whole, "name: %s\nID: %llu\nformat:\n%s\nprint fmt: \"%s\"%s\n",
			     name, (unsigned long long)p->format.id, made.texts[0],
			     made.texts[1], made.texts[2]) < 0)
		err = -ENOMEM;
	if (err)
		*whole = NULL;
	free_made(&made);
	return err;
}

static bool has_id(const struct redact_formats *formats, u64 id)
{
	return redact_formats__find(formats, id);
}

static int add_format(struct redact_formats *formats, const struct redact_format *format)
{
	struct redact_format *all;

	if (formats->nr == MAX_FORMATS)
		return -EBADMSG;
	all = reallocarray(formats->formats, formats->nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	formats->formats = all;
	all[formats->nr++] = *format;
	return 0;
}

static void put_u32(FILE *f, u32 value)
{
	fwrite(&value, sizeof(value), 1, f);
}

static void put_sized(FILE *f, const char *text, u64 size)
{
	fwrite(&size, sizeof(size), 1, f);
	fwrite(text, 1, size, f);
}

static void put_head(FILE *f, const char *machine, u32 page_size)
{
	u32 long_size = machine[1], header = sizeof(u64) + long_size;
	char page[512];

	scnprintf(page, sizeof(page), HEADER_PAGE, long_size, header, page_size - header);
	fwrite(magic, sizeof(magic), 1, f);
	fwrite("0.6", 4, 1, f);
	fwrite(machine, 2, 1, f);
	put_u32(f, page_size);
	fwrite("header_page", 12, 1, f);
	put_sized(f, page, strlen(page));
	fwrite("header_event", 13, 1, f);
	put_sized(f, "", 0);
}

/* Return: 1 if it was written, 0 if it was left out, or a negative errno. */
static int read_format(struct redact_formats *formats, const struct redact_words *w,
		       const char *system, struct input text, FILE *f)
{
	struct parsed p = {};
	char *whole = NULL;
	int err;

	scnprintf(p.system, sizeof(p.system), "%s", system);
	parse_head(&p, text);
	if (!p.has_id || !*p.name || has_id(formats, p.format.id))
		return 0;
	err = make_text(&p, w, text, &whole);
	if (!err)
		err = add_format(formats, &p.format);
	if (err) {
		free(p.format.fields);
	} else {
		put_sized(f, whole, strlen(whole));
		err = 1;
	}
	free(whole);
	return err;
}

/* The number of formats is written when they have been read. */
static int read_system(struct redact_formats *formats, const struct redact_words *w,
		       struct input *in, FILE *f)
{
	char name[REDACT_TEXT_MAX];
	struct input text;
	const char *system;
	u32 nr, written = 0;
	long at, end;

	if (!take_text(in, &system) || !take_u32(in, &nr))
		return -EBADMSG;
	if (redact_known__system(system))
		scnprintf(name, sizeof(name), "%s", system);
	else
		redact_words__put(w, REDACT_EVENT, system, strlen(system), name);
	fwrite(name, strlen(name) + 1, 1, f);
	at = ftell(f);
	put_u32(f, 0);
	while (nr--) {
		int ret;

		if (!take_sized(in, &text))
			return -EBADMSG;
		ret = read_format(formats, w, system, text, f);
		if (ret < 0)
			return ret;
		written += ret;
	}
	end = ftell(f);
	if (at < 0 || end < 0 || fseek(f, at, SEEK_SET))
		return -EIO;
	put_u32(f, written);
	return fseek(f, end, SEEK_SET) ? -EIO : 0;
}

/**
 * redact_formats__read - read the formats of tracepoints, and write what may be told of them
 * @formats: returns them; must be freed in any case
 * @w: the words
 * @data: the section HEADER_TRACING_DATA
 * @size: of the section
 * @f: where the new section goes; a stream in memory
 *
 * Return: 0; -EBADMSG if the section is damaged; -ENOMEM; -EIO.
 */
int redact_formats__read(struct redact_formats *formats, const struct redact_words *w,
			 const void *data, size_t size, FILE *f)
{
	const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	struct input in = { .data = data, .left = size }, text;
	const char *version, *machine;
	u32 nr, page_size;
	int err = 0;

	if (!take_mark(&in, magic, sizeof(magic)) || !take_text(&in, &version))
		return -EBADMSG;
	machine = take(&in, 2);
	/* The bytes of numbers are in the order of this machine. */
	if (!machine || machine[0] != is_big_endian ||
	    (machine[1] != 4 && machine[1] != 8) || !take_u32(&in, &page_size))
		return -EBADMSG;
	if (!take_mark(&in, "header_page", 12) || !take_sized(&in, &text) ||
	    !take_mark(&in, "header_event", 13) || !take_sized(&in, &text))
		return -EBADMSG;
	if (!take_u32(&in, &nr))
		return -EBADMSG;
	while (nr--) {
		if (!take_sized(&in, &text))
			return -EBADMSG;
	}
	if (!take_u32(&in, &nr))
		return -EBADMSG;

	put_head(f, machine, page_size);
	put_u32(f, 0);
	put_u32(f, nr);
	while (nr-- && !err)
		err = read_system(formats, w, &in, f);
	/* No kallsyms, no formats of printk, no names of tasks */
	put_u32(f, 0);
	put_u32(f, 0);
	put_sized(f, "", 0);
	return err ?: ferror(f) ? -ENOMEM : 0;
}

/**
 * redact_formats__find - find a tracepoint
 * @formats: those of the recording
 * @id: its id
 *
 * Return: the format, or NULL.
 */
const struct redact_format *redact_formats__find(const struct redact_formats *formats, u64 id)
{
	for (size_t i = 0; i < formats->nr; i++) {
		if (formats->formats[i].id == id)
			return &formats->formats[i];
	}
	return NULL;
}

void redact_formats__exit(struct redact_formats *formats)
{
	for (size_t i = 0; i < formats->nr; i++)
		free(formats->formats[i].fields);
	zfree(&formats->formats);
	formats->nr = 0;
}
