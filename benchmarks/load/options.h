/* What is asked for on the command line, as NAME=VALUE. */
#pragma once

struct options {
    const char *protocol; /* weft, nats, redis or mqtt */
    const char *service;  /* of weft */
    const char *subject;  /* that `sit` listens to */
    const char *pids;     /* of the broker, with commas between: what they work is printed */
    long port;
    long far_port;    /* where those who publish connect, if not where the others do */
    long flows;       /* subjects, each with a publisher of its own */
    long subscribers; /* of each flow, a connection each */
    long patterns;    /* instead of flows: wildcard subscriptions, over ten connections */
    long subjects;    /* that are published to in turn; each matches one of the patterns */
    long size;        /* of a payload, in bytes */
    long count;       /* messages of each flow, or connections */
    long window;      /* messages of each flow, or connections, that may be on their way */
    long rate;        /* messages a second */
    long subscribe;   /* 1: each connection has a subscription of its own */
    long spin;        /* 1: wait without sleeping */
    double warm;      /* seconds of the same before anything is measured */
    double seconds;   /* stop sending after this long, if count is not reached before */
};

struct options read_options(int count, char **arguments);
