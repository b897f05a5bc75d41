// A judge's endpoint on loopback that costs some microseconds a request, so that it is not what a benchmark measures:
// one thread, one epoll, HTTP/1.1 with keep-alive, plain or over TLS. It prints its port and serves until it is killed.
//
//   upstream [-l latency in ms] [-s spread, a share of the latency] [-c certificate -k key]
//            [-r share of calls refused with 429, at once and at random] [-a their Retry-After in s]
//
//   POST [/KIND-N]/v1/chat/completions   after the latency: reasons of 1.6 kB, or "1" or "2" to a body that holds an
//                                        assistant's turn. KIND: `ok`; `brief`, "1" or "2" to any body; `slow`, ten
//                                        times the latency; `dead`, the connection is reset. N: the lane under which
//                                        the call is counted, below 256
//   GET  .../models                      a list of models, from dead lanes as well
//   GET  .../count                       what came so far, as JSON: see `count`
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/ssl.h>
#else
typedef void SSL;
#endif

enum { LANES = 256, EVENTS = 512, LARGEST = 32 << 20 };
typedef enum { OK, SLOW, DEAD } Kind;

typedef struct {
  int fd;
  uint32_t life;  // grows when the place is used again, so that timers and events of a former connection are known
  bool waiting;   // a call is being answered
  bool second;    // ... to which one character is the answer
  int lane;
  char *in;  // what came of the next request
  size_t used, space;
  char *out;  // what could not be sent yet
  size_t left, sent;
  SSL *tls;
} Connection;

typedef struct {
  double due;
  int place;
  uint32_t life;
} Timer;

static Connection *connections;
static int *places_free;
static int places, free_places, places_space;
static Timer *timers;  // a heap, the earliest on top
static int timers_used, timers_space;
static int poll_fd;
static double latency, spread, refused_share;
static char *reasons, *choices[2], *refusal;

static uint64_t calls, answered, refused, body_bytes;
static long in_flight, most;
static double first_call, last_call;
static struct {
  uint64_t calls, answered;
  double last;
} lanes[LANES];

static void *grown(void *block, size_t bytes) {
  block = realloc(block, bytes);
  if (!block) abort();
  return block;
}

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static double uniform(void) {  // xorshift, always the same sequence
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) / (double)(1ull << 53);
}

// --- timers ----------------------------------------------------------------------------------------------------------

static void timer_add(Timer timer) {
  if (timers_used == timers_space) timers = grown(timers, sizeof *timers * (timers_space = 2 * timers_space + 1024));
  int at = timers_used++;
  for (int above; at && timers[above = (at - 1) / 2].due > timer.due; at = above) timers[at] = timers[above];
  timers[at] = timer;
}

static Timer timer_take(void) {
  Timer first = timers[0], last = timers[--timers_used];
  int at = 0;
  for (int below; (below = 2 * at + 1) < timers_used; at = below) {
    if (below + 1 < timers_used && timers[below + 1].due < timers[below].due) below++;
    if (timers[below].due >= last.due) break;
    timers[at] = timers[below];
  }
  timers[at] = last;
  return first;
}

// --- bytes in and out: both return the number, 0 for a connection that ended, -1 for later ---------------------------

#ifdef WITH_TLS
static ssize_t tls_result(SSL *tls, int done) {
  if (done > 0) return done;
  int why = SSL_get_error(tls, done);
  return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? -1 : 0;
}
#endif

static ssize_t bytes_in(Connection *c, char *into, size_t most_bytes) {
#ifdef WITH_TLS
  if (c->tls) return tls_result(c->tls, SSL_read(c->tls, into, (int)most_bytes));
#endif
  ssize_t done = recv(c->fd, into, most_bytes, 0);
  return done >= 0 ? done : errno == EAGAIN ? -1 : 0;
}

static ssize_t bytes_out(Connection *c, const char *from, size_t number) {
#ifdef WITH_TLS
  if (c->tls) return tls_result(c->tls, SSL_write(c->tls, from, (int)number));
#endif
  ssize_t done = send(c->fd, from, number, MSG_NOSIGNAL);
  return done >= 0 ? done : errno == EAGAIN ? -1 : 0;
}

// --- connections -----------------------------------------------------------------------------------------------------

static void watch(Connection *c, int what, uint32_t events) {
  uint64_t name = (uint64_t)c->life << 32 | (uint32_t)(c - connections);
  struct epoll_event event = {.events = events, .data.u64 = name};
  epoll_ctl(poll_fd, what, c->fd, &event);
}

static void end(Connection *c, bool reset) {
  if (reset) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
  if (c->waiting) in_flight--;
#ifdef WITH_TLS
  if (c->tls) SSL_free(c->tls);
#endif
  close(c->fd);
  free(c->in);
  free(c->out);
  *c = (Connection){.fd = -1, .life = c->life + 1};
  places_free[free_places++] = (int)(c - connections);
}

static Connection *begin(int fd) {
  if (!free_places && places == places_space) {
    places_space = 2 * places_space + 1024;
    connections = grown(connections, sizeof *connections * places_space);
    places_free = grown(places_free, sizeof *places_free * places_space);
  }
  if (!free_places) {
    connections[places] = (Connection){.fd = -1};
    places_free[free_places++] = places++;
  }
  Connection *c = &connections[places_free[--free_places]];
  c->fd = fd;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  watch(c, EPOLL_CTL_ADD, EPOLLIN);
  return c;
}

static void push(Connection *c) {  // what is left to send; ends the connection where it cannot be
  while (c->sent < c->left) {
    ssize_t done = bytes_out(c, c->out + c->sent, c->left - c->sent);
    if (done == 0) return end(c, false);
    if (done < 0) return watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
    c->sent += (size_t)done;
  }
  free(c->out);
  c->out = NULL;
  c->left = c->sent = 0;
  watch(c, EPOLL_CTL_MOD, EPOLLIN);
}

static void say(Connection *c, const char *answer) {
  size_t number = strlen(answer);
  ssize_t done = c->left ? -1 : bytes_out(c, answer, number);
  if (done == (ssize_t)number) return;
  if (done == 0) return end(c, false);
  if (done < 0) done = 0;
  c->out = grown(c->out, c->left + number - (size_t)done);
  memcpy(c->out + c->left, answer + done, number - (size_t)done);
  c->left += number - (size_t)done;
  push(c);
}

// --- answers ---------------------------------------------------------------------------------------------------------

static char *response(const char *json) {  // with the limits that providers tell, so high that they hold nobody
  char *made;
  int length = asprintf(&made,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                        "x-request-id: req_0123456789abcdef\r\nx-ratelimit-limit-requests: 900000000\r\n"
                        "x-ratelimit-remaining-requests: 900000000\r\nx-ratelimit-limit-tokens: 900000000000\r\n"
                        "x-ratelimit-remaining-tokens: 900000000000\r\n\r\n%s",
                        strlen(json), json);
  if (length < 0) abort();
  return made;
}

static char *completion(const char *text, int output_tokens) {
  char *json;
  int length = asprintf(&json,
                        "{\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion\",\"created\":1760000000,"
                        "\"model\":\"judge-2026-01-01\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                        "\"content\":\"%s\",\"refusal\":null,\"annotations\":[]},\"logprobs\":null,"
                        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1500,\"completion_tokens\":%d,"
                        "\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},"
                        "\"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0}},"
                        "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0123456789\"}",
                        text, output_tokens, 1500 + output_tokens);
  if (length < 0) abort();
  char *made = response(json);
  free(json);
  return made;
}

static char *refusing(const char *retry_after) {
  const char *json = "{\"error\":{\"message\":\"Rate limit reached\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}";
  char *made;
  int length = asprintf(&made,
                        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                        "%s%s%s\r\n%s",
                        strlen(json), retry_after ? "Retry-After: " : "", retry_after ? retry_after : "",
                        retry_after ? "\r\n" : "", json);
  if (length < 0) abort();
  return made;
}

static void count(Connection *c) {  // in `lanes`: number, calls, answered, time of the last call; times of day in s
  static char json[64 * 1024];
  int at = sprintf(json,
                   "{\"calls\":%lu,\"answered\":%lu,\"refused\":%lu,\"bytes\":%lu,\"in_flight\":%ld,\"most\":%ld,\"first\":%.6f,\"last\":%.6f,"
                   "\"cpu\":%.6f,\"lanes\":[",
                   calls, answered, refused, body_bytes, in_flight, most, first_call, last_call, now(CLOCK_PROCESS_CPUTIME_ID));
  const char *comma = "";
  for (int n = 0; n < LANES; n++) {
    if (!lanes[n].calls) continue;
    at += sprintf(json + at, "%s[%d,%lu,%lu,%.6f]", comma, n, lanes[n].calls, lanes[n].answered, lanes[n].last);
    comma = ",";
  }
  sprintf(json + at, "]}");
  char *made = response(json);
  say(c, made);
  free(made);
}

static void answer(Connection *c) {
  c->waiting = false;
  in_flight--;
  lanes[c->lane].answered++;
  answered++;
  say(c, c->second ? choices[answered / 2 % 2] : reasons);
}

static void call(Connection *c, const char *path, const char *body, size_t length) {
  int lane = 0;
  char kind[8] = "ok";
  sscanf(path, "/%7[a-z]-%d/", kind, &lane);
  double seconds = latency * (1 + spread * (2 * uniform() - 1)) * (strcmp(kind, "slow") ? 1 : 10);
  c->lane = lane & (LANES - 1);
  c->second = !strcmp(kind, "brief") || memmem(body, length, "\"assistant\"", 11);
  c->waiting = true;
  calls++;
  body_bytes += length;
  last_call = lanes[c->lane].last = now(CLOCK_REALTIME);
  if (!first_call) first_call = last_call;
  lanes[c->lane].calls++;
  if (refused_share > 0 && uniform() < refused_share) {
    c->waiting = false;
    refused++;
    return say(c, refusal);
  }
  if (++in_flight > most) most = in_flight;
  if (!strcmp(kind, "dead")) return end(c, true);
  timer_add((Timer){now(CLOCK_MONOTONIC) + seconds, (int)(c - connections), c->life});
}

// --- requests --------------------------------------------------------------------------------------------------------

static bool request(Connection *c) {  // serve one that has come as a whole; false: there is none
  char *stop = c->used ? memmem(c->in, c->used, "\r\n\r\n", 4) : NULL;
  if (!stop) return false;
  *stop = 0;
  const char *named = strcasestr(c->in, "\r\ncontent-length:");
  size_t length = named ? strtoul(named + 17, NULL, 10) : 0;
  size_t head = (size_t)(stop + 4 - c->in), whole = head + length;
  bool post = !strncmp(c->in, "POST ", 5);
  if (length > LARGEST || strcasestr(c->in, "\r\ntransfer-encoding:")) return end(c, true), false;
  if (c->used < whole) return *stop = '\r', false;
  char path[512] = "";
  sscanf(c->in, "%*s %511s", path);
  uint32_t life = c->life;
  if (post) call(c, path, c->in + head, length);
  else if (strstr(path, "/models")) say(c, "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{\"data\":[{\"id\":\"judge\"}]}");
  else if (strstr(path, "/count")) count(c);
  else say(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  if (c->life != life) return false;
  memmove(c->in, c->in + whole, c->used -= whole);
  return true;
}

static void receive(Connection *c) {
  uint32_t life = c->life;
  for (;;) {
    if (c->space - c->used < 8192) c->in = grown(c->in, c->space = 2 * c->space + 16384);
    ssize_t done = bytes_in(c, c->in + c->used, c->space - c->used - 1);
    if (done == 0) return end(c, false);
    if (done < 0) return;
    c->used += (size_t)done;
    c->in[c->used] = 0;
    while (!c->waiting && request(c)) {}
    if (c->life != life) return;
    if (!c->tls) return;  // epoll tells of what is left; bytes that TLS has decrypted already it does not know of
  }
}

// --- the process -----------------------------------------------------------------------------------------------------

static int listen_on_loopback(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (bind(fd, (void *)&address, size) || listen(fd, 8192) || getsockname(fd, (void *)&address, &size)) {
    perror("upstream");
    exit(1);
  }
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

static void *open_tls(const char *certificate, const char *key) {
  if (!certificate) return NULL;
#ifdef WITH_TLS
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context, certificate) == 1 &&
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1)
    return context;
#endif
  fprintf(stderr, "upstream: made without TLS, or the certificate cannot be read: %s %s\n", certificate, key);
  exit(1);
}

static void accept_all(int listener, void *tls) {
  for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
    Connection *c = begin(fd);
#ifdef WITH_TLS
    if (tls) {
      c->tls = SSL_new(tls);
      SSL_set_fd(c->tls, fd);
      SSL_set_accept_state(c->tls);
    }
#else
    (void)c, (void)tls;
#endif
  }
}

static void answer_due(void) {
  for (double time = now(CLOCK_MONOTONIC); timers_used && timers[0].due <= time;) {
    Timer timer = timer_take();
    Connection *c = &connections[timer.place];
    if (c->life != timer.life) continue;
    answer(c);
    while (c->life == timer.life && !c->waiting && request(c)) {}
  }
}

static void serve(int listener, void *tls) {
  static struct epoll_event events[EVENTS];
  for (;;) {
    struct timespec wait = {0}, *limit = timers_used ? &wait : NULL;
    double left = timers_used ? fmax(0, timers[0].due - now(CLOCK_MONOTONIC)) : 0;
    wait = (struct timespec){(time_t)left, (long)(1e9 * (left - (time_t)left))};
    int number = epoll_pwait2(poll_fd, events, EVENTS, limit, NULL);
    for (int n = 0; n < number; n++) {
      if (events[n].data.u64 == UINT64_MAX) {
        accept_all(listener, tls);
        continue;
      }
      Connection *c = &connections[(uint32_t)events[n].data.u64];
      uint32_t life = (uint32_t)(events[n].data.u64 >> 32);
      if (c->life == life && events[n].events & EPOLLOUT) push(c);
      if (c->life == life && events[n].events & ~EPOLLOUT) receive(c);
    }
    answer_due();
  }
}

int main(int number, char **words) {
  const char *certificate = NULL, *key = NULL, *retry_after = NULL;
  for (int option; (option = getopt(number, words, "l:s:c:k:r:a:")) != -1;) {
    if (option == 'l') latency = atof(optarg) / 1000;
    else if (option == 's') spread = atof(optarg);
    else if (option == 'c') certificate = optarg;
    else if (option == 'k') key = optarg;
    else if (option == 'r') refused_share = atof(optarg);
    else if (option == 'a') retry_after = optarg;
    else return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever started it is gone
  signal(SIGPIPE, SIG_IGN);
  char text[2048] = "";
  while (strlen(text) < 1500)
    strcat(text, "The first answer names what was asked for and gives its grounds; the second one repeats the question. ");
  reasons = completion(text, 400);
  choices[0] = completion("1", 1);
  choices[1] = completion("2", 1);
  refusal = refusing(retry_after);
  void *tls = open_tls(certificate, key);
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  int listener = listen_on_loopback();
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event);
  serve(listener, tls);
}
