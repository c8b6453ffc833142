//! The table of all metrics: name, kind and description.
//!
//! Invariant: no label identifies players or matches, so a server of many matches has as many series as a server of
//! one. Counters never decrease while the process lives. The guide (`docs/guide/operating.md`) explains what to do
//! about each metric.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric. Its series differ by at most one label; `build_info` has several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Counter;
    Family { name, kind, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Gauge;
    Family { name, kind, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    let kind = Kind::Histogram;
    Family { name, kind, help }
}

pub(super) const BUILD_INFO: Family = gauge(
    "twinstep_build_info",
    "Always 1; the labels identify the build.",
);
pub(super) const READY: Family = gauge(
    "twinstep_ready",
    "1 while this server admits new players (see /readyz), else 0.",
);
pub(super) const MATCHES: Family = gauge("twinstep_matches", "Running matches.");
pub(super) const MATCHES_MAX: Family = gauge(
    "twinstep_matches_max",
    "Limit of running matches (--matches); 0 on a server of one match.",
);
pub(super) const MADE: Family = counter(
    "twinstep_matches_started_total",
    "Matches started or resumed on demand, because a ticket arrived.",
);
pub(super) const NOT_MADE: Family = counter(
    "twinstep_match_requests_refused_total",
    "Requests for a match on demand that did not start one, by reason; tickets that wait for the same match are one request.",
);
pub(super) const ENDED: Family = counter(
    "twinstep_matches_ended_total",
    "Ended matches that were started on demand, by reason.",
);
pub(super) const PLAYERS: Family = gauge(
    "twinstep_players",
    "Players with a seat, including those that are reconnecting.",
);
pub(super) const SPECTATORS: Family = gauge("twinstep_spectators", "Spectator sessions.");
pub(super) const SEATS_FREE: Family = gauge(
    "twinstep_seats_free",
    "Free seats for new players, over all matches.",
);
pub(super) const SESSIONS: Family = gauge(
    "twinstep_sessions",
    "Sessions in any stage, from the first dial.",
);
pub(super) const SESSIONS_MAX: Family =
    gauge("twinstep_sessions_max", "The maximum number of sessions.");
pub(super) const RELIEF: Family = gauge(
    "twinstep_load_shedding_level",
    "Level of load shedding: 0 none, 1 no spectators, 2 no announcements (early forwarding of inputs), 3 no new players, 4 longer turns.",
);
pub(super) const MEMORY: Family =
    gauge("twinstep_memory_bytes", "Resident memory of this process.");
pub(super) const DISK_FREE: Family = gauge(
    "twinstep_journal_disk_free_bytes",
    "Free bytes on the journal disk that has the least.",
);

pub(super) const TICK_LATENESS: Family = histogram(
    "twinstep_tick_lateness_seconds",
    "Time from when a tick was due to when it started, in matches with connected clients.",
);
pub(super) const STEP_TIME: Family = histogram(
    "twinstep_step_seconds",
    "Time to compute one step of the game, with its digest.",
);
pub(super) const SEAL_TO_SEND: Family = histogram(
    "twinstep_seal_to_send_seconds",
    "Time from sealing a turn (its inputs are final) to passing its last datagram to the socket, including steps and journal.",
);
pub(super) const RESOLVER_TIME: Family = histogram(
    "twinstep_resolver_seconds",
    "Time to answer one query of the game, directly or in a background job.",
);

pub(super) const TICKS: Family = counter("twinstep_ticks_total", "Played ticks, over all matches.");
pub(super) const TURNS: Family = counter(
    "twinstep_turns_total",
    "Sent turns: groups of ticks that are sent together.",
);
pub(super) const FILLS: Family = counter(
    "twinstep_fills_total",
    "Inputs that were missing at their deadline and were filled in by the server, one per player and tick.",
);
pub(super) const QUERIES: Family = counter(
    "twinstep_queries_total",
    "Queries that the game asked the server.",
);
pub(super) const UNANSWERED: Family = counter(
    "twinstep_queries_unanswered_total",
    "Queries of the game that got no answer.",
);
pub(super) const DESYNCS: Family = counter(
    "twinstep_desyncs_total",
    "Players whose client differed from the server, each counted at most once an hour.",
);
pub(super) const SERVER_FAULTS: Family = counter(
    "twinstep_server_faults_total",
    "Desyncs in which the journal shows that this server's world was wrong.",
);
pub(super) const HEALS: Family = counter(
    "twinstep_heals_total",
    "Whole worlds sent to clients that differed or were too far behind.",
);
pub(super) const MALFORMED: Family = counter(
    "twinstep_malformed_packets_total",
    "Packets of admitted clients that could not be read.",
);
pub(super) const PANICS: Family = counter(
    "twinstep_panics_total",
    "Panics of the game or a hook, including those that the match survived.",
);
pub(super) const JOURNAL_BYTES: Family =
    counter("twinstep_journal_bytes_total", "Bytes written to journals.");
pub(super) const JOURNAL_WRITES: Family = counter(
    "twinstep_journal_writes_total",
    "Writes to journals; one can hold several records.",
);
pub(super) const JOURNAL_ERRORS: Family = counter(
    "twinstep_journal_errors_total",
    "Journals that could not be written.",
);
pub(super) const JOINS: Family = counter(
    "twinstep_joins_total",
    "Sessions that reached a match, by result of the join: \"playing\" if the session started to play or watch, else the reason it ended.",
);
pub(super) const KICKS: Family = counter(
    "twinstep_kicks_total",
    "Players and spectators removed by the server, by reason.",
);
pub(super) const INCIDENTS: Family = counter(
    "twinstep_incidents_total",
    "Faults of the game or the server (panics, hangs, journal errors), by kind.",
);

pub(super) const DATAGRAMS_IN: Family =
    counter("twinstep_datagrams_received_total", "Datagrams received.");
pub(super) const BYTES_IN: Family = counter(
    "twinstep_received_bytes_total",
    "Bytes received, without UDP and IP headers.",
);
pub(super) const DATAGRAMS_OUT: Family = counter(
    "twinstep_datagrams_sent_total",
    "Datagrams sent: passed to the operating system.",
);
pub(super) const BYTES_OUT: Family = counter(
    "twinstep_sent_bytes_total",
    "Bytes sent, without UDP and IP headers.",
);
pub(super) const PACKETS_IN: Family = counter(
    "twinstep_packets_received_total",
    "Packets received from admitted clients, after decryption.",
);
pub(super) const PACKETS_OUT: Family = counter(
    "twinstep_packets_sent_total",
    "Packets sent by matches, before encryption.",
);
pub(super) const DROPPED: Family = counter(
    "twinstep_datagrams_dropped_total",
    "Dropped datagrams and packets, by reason.",
);
pub(super) const WEB_LINES: Family = gauge(
    "twinstep_web_sessions",
    "Open WebTransport sessions of browsers.",
);
pub(super) const WEB_IN: Family = counter(
    "twinstep_web_datagrams_received_total",
    "Datagrams received from browsers; also counted in twinstep_datagrams_received_total.",
);
pub(super) const WEB_OUT: Family = counter(
    "twinstep_web_datagrams_sent_total",
    "Datagrams sent to browsers; also counted in twinstep_datagrams_sent_total.",
);
pub(super) const WEB_CLOSED: Family = counter(
    "twinstep_web_connections_closed_total",
    "Connections of browsers that were refused or closed, by reason.",
);

#[cfg(test)]
pub(super) const ALL: [&Family; 46] = [
    &BUILD_INFO,
    &READY,
    &MATCHES,
    &MATCHES_MAX,
    &PLAYERS,
    &SPECTATORS,
    &SEATS_FREE,
    &SESSIONS,
    &SESSIONS_MAX,
    &RELIEF,
    &MEMORY,
    &DISK_FREE,
    &TICK_LATENESS,
    &STEP_TIME,
    &SEAL_TO_SEND,
    &RESOLVER_TIME,
    &TICKS,
    &TURNS,
    &FILLS,
    &QUERIES,
    &UNANSWERED,
    &DESYNCS,
    &SERVER_FAULTS,
    &HEALS,
    &MALFORMED,
    &PANICS,
    &JOURNAL_BYTES,
    &JOURNAL_WRITES,
    &JOURNAL_ERRORS,
    &MADE,
    &NOT_MADE,
    &ENDED,
    &JOINS,
    &KICKS,
    &INCIDENTS,
    &DATAGRAMS_IN,
    &BYTES_IN,
    &DATAGRAMS_OUT,
    &BYTES_OUT,
    &PACKETS_IN,
    &PACKETS_OUT,
    &WEB_IN,
    &WEB_OUT,
    &DROPPED,
    &WEB_LINES,
    &WEB_CLOSED,
];
