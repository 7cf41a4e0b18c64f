package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interruptGrace is the time that the program has to end by itself after an interrupt. It leaves
// half a second of the two within which every interrupt ends the program. Files are written
// atomically, so that the end may come at any moment.
const interruptGrace = 1500 * time.Millisecond

// interruptible returns a context that ends at SIGINT or SIGTERM, and a function that ends the
// handling of both. A second signal ends the program at once. After SIGINT, which a person waits
// for, the program ends after interruptGrace wherever it is. After SIGTERM, which schedulers send
// some time before they kill, it saves what is unfinished, however long that takes.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		signal.Stop(signals)
		cancel()
		if first == os.Interrupt {
			time.Sleep(interruptGrace)
			fmt.Fprintln(os.Stderr, "noether: stopped; what was saved is kept, and running it again goes on from there")
			os.Exit(1)
		}
	}()
	return ctx, func() { signal.Stop(signals) }
}
