// Package guard turns panics into errors.
package guard

import (
	"fmt"
	"runtime/debug"
)

// A Panic is the error that stands for a panic. If a measure panics, the run records a failure of
// its cell and continues.
type Panic struct {
	value any    // of the panic
	Stack string // of the goroutine, as debug.Stack formats it
}

func (p *Panic) Error() string {
	return fmt.Sprintf("it crashed, which is an error in this program: %v", p.value)
}

// Run runs f and returns its error, or a *Panic if it panics.
func Run(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, string(debug.Stack())}
		}
	}()
	return f()
}
