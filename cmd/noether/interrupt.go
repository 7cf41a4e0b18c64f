package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interruptGrace is the time after an interrupt at which the program is ended if it has not ended
// normally. An interrupt should end the program within two seconds. Files are written atomically,
// so the program can be ended at any time.
const interruptGrace = 1500 * time.Millisecond

// interruptible returns a context that ends at SIGINT or SIGTERM, and a function that ends the
// handling of both. A second signal ends the program at once. After SIGINT, which users send, the
// program ends within interruptGrace. After SIGTERM, which schedulers send some time before they
// kill a process, it saves unfinished work without a time limit.
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
			fmt.Fprintln(os.Stderr, "noether: stopped; run it again to resume from the saved state")
			os.Exit(1)
		}
	}()
	return ctx, func() { signal.Stop(signals) }
}
