/* A ray tracer (Split-C, Table 2: p-ray). The objects of the scene, a tea pot of spheres on a table, are spread over the
 * processors; each keeps copies of those that its rays have met. Tiles of the image are dealt out in turn.
 * Usage: p-ray [-s size of the image] [-d detail of the tea pot] */
#include "report.h"

#define TILE 16
#define GROUP 16                /* objects with a common bound */
#define FAR 1e30

typedef struct { double x, y, z; } vector;
typedef struct { vector at; double radius; float red, green, blue, mirror; } object;
typedef struct { vector at; double radius; } bound;

static double dot(vector a, vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static vector vec(double x, double y, double z)
{
    vector v;

    v.x = x, v.y = y, v.z = z;
    return v;
}

static vector plus(vector a, vector b, double t) { return vec(a.x + t * b.x, a.y + t * b.y, a.z + t * b.z); }

static vector unit(vector a)
{
    double l = sqrt(dot(a, a));

    return vec(a.x / l, a.y / l, a.z / l);
}

/* Object i of a tea pot of `detail` rings: body, lid, knob, spout and handle, as spheres along their curves. */
static object object_at(int i, int detail, int count)
{
    object o;
    int ring = i / GROUP, k = i % GROUP;
    double t = (double)ring / (count / GROUP), a = 2 * M_PI * k / GROUP, r, h;

    o.red = 0.8, o.green = 0.5, o.blue = 0.3, o.mirror = 0.2;
    if (t < 0.7) {
        /* The body: radius by height. */
        h = t / 0.7;
        r = 0.3 + 1.1 * sin(M_PI * (0.15 + 0.75 * h));
        o.at = vec(r * cos(a), 1.6 * h, r * sin(a));
        o.radius = 0.28;
    } else if (t < 0.85) {
        h = (t - 0.7) / 0.15 + (double)k / GROUP / (0.15 * count / GROUP);
        o.at = vec(1.2 + 0.9 * h, 0.6 + 0.9 * h * h, 0);
        o.radius = 0.22 - 0.1 * h;
        o.red = 0.4, o.green = 0.6;
    } else {
        h = (t - 0.85) / 0.15 + (double)k / GROUP / (0.15 * count / GROUP);
        o.at = vec(-1.3 - 0.6 * sin(M_PI * h), 0.4 + 0.9 * h, 0);
        o.radius = 0.13;
        o.blue = 0.7, o.mirror = 0.4;
    }
    if (o.radius < 0.05)
        o.radius = 0.05;
    return o;
}

int count, groups;
object *copies;
char *have;
bound *bounds;
object *spread scene;
long fetched;

/* The object, from this processor's copies if it was met before. */
static object *get_object(int i)
{
    if (!have[i]) {
        copies[i] = scene[i];
        have[i] = 1;
        fetched++;
    }
    return &copies[i];
}

static double meet(vector from, vector way, vector at, double radius)
{
    vector d = vec(at.x - from.x, at.y - from.y, at.z - from.z);
    double b = dot(d, way), c = b * b - dot(d, d) + radius * radius, t;

    if (c < 0)
        return FAR;
    c = sqrt(c);
    t = b - c > 1e-6 ? b - c : b + c;
    return t > 1e-6 ? t : FAR;
}

/* The nearest object on the way, or -1. */
static int nearest(vector from, vector way, double *distance)
{
    int g, i, found = -1;
    double t;

    *distance = FAR;
    for (g = 0; g < groups; g++) {
        if (meet(from, way, bounds[g].at, bounds[g].radius) == FAR)
            continue;
        for (i = g * GROUP; i < (g + 1) * GROUP; i++) {
            object *o = get_object(i);
            t = meet(from, way, o->at, o->radius);
            if (t < *distance)
                *distance = t, found = i;
        }
    }
    return found;
}

static void trace(vector from, vector way, int depth, double color[3])
{
    static vector light = { 0.5, 0.7, -0.5 };
    vector hit, normal;
    double t, shade, table, inner[3], mirror;
    int found = nearest(from, way, &t), i;
    vector to_light = unit(light);

    table = way.y < -1e-9 ? (-0.3 - from.y) / way.y : FAR;
    if (found < 0 && table >= FAR) {
        color[0] = 0.4 + 0.2 * way.y, color[1] = 0.5 + 0.3 * way.y, color[2] = 0.8;
        return;
    }
    if (found < 0 || table < t) {
        hit = plus(from, way, table);
        normal = vec(0, 1, 0);
        i = (int)floor(hit.x) + (int)floor(hit.z);
        color[0] = color[1] = color[2] = i & 1 ? 0.7 : 0.3;
        mirror = 0.1;
    } else {
        object *o = get_object(found);
        hit = plus(from, way, t);
        normal = unit(plus(hit, o->at, -1));
        color[0] = o->red, color[1] = o->green, color[2] = o->blue;
        mirror = o->mirror;
    }
    shade = dot(normal, to_light);
    if (shade < 0 || nearest(hit, to_light, &t) >= 0)
        shade = 0;
    for (i = 0; i < 3; i++)
        color[i] *= 0.3 + 0.7 * shade;
    if (depth > 0 && mirror > 0) {
        trace(hit, unit(plus(way, normal, -2 * dot(way, normal))), depth - 1, inner);
        for (i = 0; i < 3; i++)
            color[i] = (1 - mirror) * color[i] + mirror * inner[i];
    }
}

static void draw_tile(int tile, int size, unsigned char *out)
{
    int tiles = size / TILE, x0 = tile % tiles * TILE, y0 = tile / tiles * TILE, x, y, i;
    double color[3];

    for (y = 0; y < TILE; y++)
        for (x = 0; x < TILE; x++) {
            vector way = unit(vec((x0 + x - size / 2.0) / size * 1.2, -(y0 + y - size / 2.0) / size * 1.2 - 0.15, 1));
            trace(vec(0, 1.6, -5), way, 2, color);
            for (i = 0; i < 3; i++)
                *out++ = color[i] >= 1 ? 255 : color[i] <= 0 ? 0 : (int)(color[i] * 255);
        }
}

int splitc_main(int argc, char **argv)
{
    int size = argument(argc, argv, "-s", 64L), detail = argument(argc, argv, "-d", 20L), tile, tiles, i, g;
    unsigned char part[TILE * TILE * 3], want[TILE * TILE * 3], (*spread image)[TILE * TILE * 3];
    long wrong = 0;
    double seconds;
    char what[80];

    if (size <= 0 || size % TILE != 0 || detail <= 0)
        refuse("the size of the image must be a multiple of 16");
    groups = detail;
    count = groups * GROUP;
    tiles = (size / TILE) * (size / TILE);
    scene = all_spread_malloc(count, sizeof(object));
    image = all_spread_malloc(tiles, sizeof part);
    copies = (object *)malloc(count * sizeof(object));
    have = (char *)calloc(count, 1);
    bounds = (bound *)malloc(groups * sizeof(bound));
    for_my_1d(i, count) scene[i] = object_at(i, detail, count);
    /* Every processor knows where the groups are, and of the objects only its own. */
    for (g = 0; g < groups; g++) {
        bounds[g].at = vec(0, 0, 0);
        for (i = g * GROUP; i < (g + 1) * GROUP; i++)
            bounds[g].at = plus(bounds[g].at, object_at(i, detail, count).at, 1.0 / GROUP);
        bounds[g].radius = 0;
        for (i = g * GROUP; i < (g + 1) * GROUP; i++) {
            object o = object_at(i, detail, count);
            vector d = plus(o.at, bounds[g].at, -1);
            double r = sqrt(dot(d, d)) + o.radius;
            bounds[g].radius = max(bounds[g].radius, r);
        }
    }
    barrier();
    seconds = get_seconds();

    for_my_1d(tile, tiles) {
        draw_tile(tile, size, part);
        bulk_write(image[tile], part, sizeof part);
    }
    barrier();
    seconds = get_seconds() - seconds;

    on_one {
        /* The same picture from objects that were never spread. */
        for (i = 0; i < count; i++)
            copies[i] = object_at(i, detail, count), have[i] = 1;
        for (tile = 0; tile < tiles; tile++) {
            draw_tile(tile, size, want);
            bulk_read(part, image[tile], sizeof part);
            for (i = 0; i < sizeof part; i++)
                wrong += part[i] != want[i];
        }
    }
    barrier();
    sprintf(what, "p-ray: %d x %d, %d objects", size, size, count);
    return report(what, seconds, wrong);
}
