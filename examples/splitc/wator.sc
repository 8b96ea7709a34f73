/* Fish in a current (Split-C, Table 2: wator; 5.4). Every fish feels every other. A processor reads one fish, computes with it,
 * and reads the next: what that costs depends on how fast others answer while they compute.
 * Usage: wator [-n fish] [-s steps] [-w work] */
#include "report.h"

typedef struct { double x, y, vx, vy, mass; } fish;

static fish fish_at(int i)
{
    fish f;

    f.x = cos(i * 2.4) * (1 + i % 7);
    f.y = sin(i * 2.4) * (1 + i % 5);
    f.vx = 0.01 * (i % 3 - 1), f.vy = 0.01 * (i % 4 - 1.5);
    f.mass = 1 + i % 10 / 10.0;
    return f;
}

/* The force of one fish on another; `work` rounds stand for what the original drew. */
static void force(fish *on, fish *of, double *fx, double *fy, int work)
{
    double dx = of->x - on->x, dy = of->y - on->y, d2 = dx * dx + dy * dy + 0.01, f = of->mass / (d2 * sqrt(d2));
    int i;

    for (i = 0; i < work; i++)
        f = f * 0.9999 + 0.00001 * sin(f);
    *fx += f * dx;
    *fy += f * dy;
}

static void move(fish *f, double fx, double fy)
{
    f->vx = 0.99 * f->vx + 0.01 * fx, f->vy = 0.99 * f->vy + 0.01 * fy;
    f->x += f->vx, f->y += f->vy;
}

int splitc_main(int argc, char **argv)
{
    int n = argument(argc, argv, "-n", 60L), steps = argument(argc, argv, "-s", 3L), work = argument(argc, argv, "-w", 10L);
    int i, j, step;
    long wrong = 0;
    double seconds;
    char what[80];
    fish F[n]::, New[n]::;

    for_my_1d(i, n) F[i] = fish_at(i);
    barrier();
    seconds = get_seconds();

    for (step = 0; step < steps; step++) {
        for_my_1d(i, n) {
            fish mine = F[i], other;
            double fx = 0, fy = 0;

            for (j = 0; j < n; j++) {
                other = F[j];
                if (j != i)
                    force(&mine, &other, &fx, &fy, work);
            }
            move(&mine, fx, fy);
            New[i] = mine;
        }
        barrier();
        for_my_1d(i, n) F[i] = New[i];
        barrier();
    }
    seconds = get_seconds() - seconds;

    on_one {
        fish *now = (fish *)malloc(n * sizeof(fish)), *then = (fish *)malloc(n * sizeof(fish)), got;

        for (i = 0; i < n; i++)
            now[i] = fish_at(i);
        for (step = 0; step < steps; step++) {
            for (i = 0; i < n; i++) {
                double fx = 0, fy = 0;
                for (j = 0; j < n; j++)
                    if (j != i)
                        force(&now[i], &now[j], &fx, &fy, work);
                then[i] = now[i];
                move(&then[i], fx, fy);
            }
            memcpy(now, then, n * sizeof(fish));
        }
        for (i = 0; i < n; i++) {
            got = F[i];
            wrong += fabs(got.x - now[i].x) > 1e-9 * (1 + fabs(now[i].x)) || fabs(got.y - now[i].y) > 1e-9 * (1 + fabs(now[i].y));
        }
        free(now);
        free(then);
    }
    barrier();
    sprintf(what, "wator: %d fish, %d steps", n, steps);
    return report(what, seconds, wrong);
}
