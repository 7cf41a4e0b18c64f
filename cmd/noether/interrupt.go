package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/noether-ml/noether/internal/unsaved"
)

// interruptGrace is the time from a signal to a forced exit. Files are written atomically, so the
// program can exit at any time.
const interruptGrace = 1500 * time.Millisecond

// sameSignal is the time within which signals are taken for one: a terminal sends one to this
// process and to its parent, which passes it on (see package supervise).
const sameSignal = 100 * time.Millisecond

// interruptible returns a context that SIGINT or SIGTERM cancels, and a function that stops the
// handling. A second signal ends the program at once. It ends within interruptGrace, but after
// SIGTERM it first saves unfinished work (see package unsaved).
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ctx, work := unsaved.NewContext(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cancel()
		time.Sleep(sameSignal)
		signal.Stop(signals)
		time.Sleep(interruptGrace - sameSignal)
		for first == syscall.SIGTERM && work.Held() {
			time.Sleep(50 * time.Millisecond)
		}
		fmt.Fprintln(stderr, "noether: stopped; run it again to resume from the saved state")
		os.Exit(1)
	}()
	return ctx, func() { signal.Stop(signals) }
}
