/* A file is compressed in pieces (LZSS) by all processors, written by one of them with unistd.h, read back and expanded.
 * procs: 1 2 3 4
 * output: 20000 bytes packed into less than half
 * output: the same again
 */
#include <stdio.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <sys/file.h>
#include <fcntl.h>
#include <unistd.h>
#include <errno.h>
#include <split-c/split-c.h>
#include <split-c/control.h>

#ifndef L_SET
#define L_SET 0
#endif
#define MAGIC 0x4c5a
#define PIECE 5000
#define LENGTH 20000
#define WINDOW 1023
#define MINMATCH 3
#define MAXMATCH (MINMATCH + 31)

typedef unsigned char byte;
typedef struct header { unsigned short magic, pieces; long sizes[16]; } header_t;

extern int errno;
char *mktemp(), *sprintf_();
static byte *original;
typedef byte room_t[2 * PIECE];
room_t *spread packed;          /* piece i on processor i mod PROCS */
int lengths[16]::;

static void die(s) char *s; { perror(s); exit(1); }

/* flag bytes, then either a byte, or 10 bits of distance and 5 of length in two bytes + nothing */
static int compress(in, n, out) byte *in, *out; int n;
{
	register byte *ip = in, *op = out, *flags = 0;
	int bit = 8;

	while (ip < in + n) {
		int best = 0, dist = 0, d, l;
		if (bit == 8) { flags = op++; *flags = 0; bit = 0; }
		for (d = 1; d <= WINDOW && d <= ip - in; d++) {
			for (l = 0; l < MAXMATCH && ip + l < in + n && ip[l] == ip[l - d]; l++)
				;
			if (l > best) best = l, dist = d;
			if (best == MAXMATCH) break;
		}
		if (best >= MINMATCH) {
			*flags |= 1 << bit;
			*op++ = dist & 0377;
			*op++ = (dist >> 8) << 5 | best - MINMATCH;
			ip += best;
		} else
			*op++ = *ip++;
		bit++;
	}
	return op - out;
}

static int expand(in, n, out) byte *in, *out;
{
	byte *ip = in, *op = out; int flags = 0, bit = 8;

	while (ip < in + n) {
		if (bit == 8) { flags = *ip++; bit = 0; continue; }
		if (flags >> bit++ & 1) {
			int dist = ip[0] | (ip[1] >> 5) << 8, l = (ip[1] & 037) + MINMATCH;
			ip += 2;
			while (l--) { *op = op[-dist]; op++; }
		} else
			*op++ = *ip++;
	}
	return op - out;
}

static void make_text()
{
	static char *words[] = { "spread ", "global ", "pointer ", "of ", "the ", "processor ", "store ", "sync\n" };
	unsigned s = 7; int i = 0;
	original = (byte *)malloc(LENGTH + 16);
	while (i < LENGTH) {
		s = s * 1103515245 + 12345;
		strcpy((char *)original + i, words[s >> 16 & 7]);
		i += strlen((char *)original + i);
	}
}

static void read_fully(fd, p, n) char *p; { int k; for (; n > 0; p += k, n -= k) if ((k = read(fd, p, n)) <= 0) die("read"); }

splitc_main(argc, argv) char *argv[];
{
	char name[64];
	int fd, i, n, pieces = LENGTH / PIECE;
	header_t h;
	struct stat st;
	byte *buffer = (byte *)malloc(2 * PIECE);

	make_text();
	packed = (room_t *spread)all_spread_malloc(pieces, sizeof(room_t));
	for_my_1d(i, pieces) lengths[i] = compress(original + i * PIECE, PIECE, *(room_t *)(packed + i));
	barrier();
	on_one {
		sprintf(name, "/tmp/lz%d.%d", getpid(), getuid());
		if ((fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_EXCL, 0600)) < 0) die(name);
		bzero((char *)&h, sizeof h);
		h.magic = MAGIC, h.pieces = pieces;
		if (write(fd, (char *)&h, sizeof(h)) != sizeof(h)) die("write");
		for (i = 0; i < pieces; i++) {
			n = h.sizes[i] = lengths[i];
			bulk_read(buffer, (byte *global)(packed + i), n);
			if (write(fd, buffer, n) != n) die("write");
		}
		lseek(fd, (off_t)0, L_SET);
		if (write(fd, (char *)&h, sizeof(h)) < 0) die("write");
		if (fstat(fd, &st) < 0) die("fstat");
		printf("%d bytes packed into %s\n", LENGTH, st.st_size < LENGTH / 2 && S_ISREG(st.st_mode) ? "less than half" : "too much");
		lseek(fd, 0L, SEEK_SET);
		read_fully(fd, &h, sizeof h);
		if (h.magic != MAGIC) { fprintf(stderr, "bad magic %x\n", h.magic); exit(2); }
		for (i = 0, n = 0; i < h.pieces; i++) {
			byte out[PIECE + 64];
			read_fully(fd, buffer, (int)h.sizes[i]);
			if (expand(buffer, (int)h.sizes[i], out) != PIECE || bcmp(out, original + i * PIECE, PIECE)) n++;
		}
		close(fd);
		if (unlink(name) < 0 && errno != ENOENT) die("unlink");
		printf(n ? "different\n" : "the same again\n");
	}
	barrier();
	all_spread_free(packed);
}
