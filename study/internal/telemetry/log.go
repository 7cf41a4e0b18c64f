package telemetry

import (
	"context"
	"log/slog"
	"sync"
)

// keptLines is the number of log lines that a failure records.
const keptLines = 30

// A Logger passes records on and keeps the last lines, for the records of failures.
type Logger struct {
	*slog.Logger
	last *lastLines
}

// NewLogger returns a Logger that passes records on to another logger, which may be nil.
func NewLogger(to *slog.Logger) Logger {
	last := &lastLines{}
	memory := slog.NewTextHandler(last, &slog.HandlerOptions{Level: slog.LevelDebug})
	if to == nil {
		return Logger{slog.New(memory), last}
	}
	return Logger{slog.New(&teeHandler{memory, to.Handler()}), last}
}

// Recent returns the last lines, oldest first.
func (l Logger) Recent() []string { return l.last.lines() }

// lastLines is an io.Writer that keeps the last lines.
type lastLines struct {
	mutex sync.Mutex
	kept  []string
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	n := len(p)
	if n > 0 && p[n-1] == '\n' {
		p = p[:n-1]
	}
	if len(l.kept) == keptLines {
		copy(l.kept, l.kept[1:])
		l.kept = l.kept[:keptLines-1]
	}
	l.kept = append(l.kept, string(p))
	return n, nil
}

func (l *lastLines) lines() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string(nil), l.kept...)
}

// A teeHandler passes records to memory, and to another handler if that is enabled for them.
type teeHandler struct{ memory, to slog.Handler }

func (b *teeHandler) Enabled(context.Context, slog.Level) bool { return true }

func (b *teeHandler) Handle(ctx context.Context, r slog.Record) error {
	b.memory.Handle(ctx, r)
	if b.to.Enabled(ctx, r.Level) {
		return b.to.Handle(ctx, r)
	}
	return nil
}

func (b *teeHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return &teeHandler{b.memory.WithAttrs(as), b.to.WithAttrs(as)}
}

func (b *teeHandler) WithGroup(name string) slog.Handler {
	return &teeHandler{b.memory.WithGroup(name), b.to.WithGroup(name)}
}
