/* What nothing that adds to one word can be faster than: threads that do so, each with a locked instruction. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Alignas(64) long word;
static _Alignas(64) int goes;
static _Alignas(64) int ends;
static long counts[64][8];

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static void *add(void *own) {
  long count = 0;
  while (!__atomic_load_n(&goes, __ATOMIC_ACQUIRE)) {
  }
  while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
    for (int i = 0; i < 64; i++) __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
    count += 64;
  }
  *(long *)own = count;
  return NULL;
}

int main(int count, char **arguments) {
  int threads = count == 3 ? atoi(arguments[1]) : 0;
  double lasts_ns = count == 3 ? 1e6 * atof(arguments[2]) : 0;
  if (threads < 1 || threads > 64 || lasts_ns <= 0) {
    fprintf(stderr, "error: usage: contended THREADS MILLISECONDS\n");
    return 1;
  }
  pthread_t all[64];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&all[i], NULL, add, counts[i])) return 1;
  double begun = now_ns();
  __atomic_store_n(&goes, 1, __ATOMIC_RELEASE);
  struct timespec time = {(time_t)(lasts_ns / 1e9), (long)lasts_ns % 1000000000};
  nanosleep(&time, NULL);
  __atomic_store_n(&ends, 1, __ATOMIC_RELAXED);
  long sum = 0;
  for (int i = 0; i < threads; i++) {
    pthread_join(all[i], NULL);
    sum += counts[i][0];
  }
  double took = now_ns() - begun;
  if (sum != word) {
    fprintf(stderr, "error: an addition was lost\n");
    return 1;
  }
  printf("add 8 %.3f\n", took / (double)sum);
  return 0;
}
