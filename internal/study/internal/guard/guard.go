// Package guard turns panics into errors.
package guard

import (
	"fmt"
	"runtime/debug"
)

// A Panic is the error that stands for a panic, such as one in a measure. A run that gets it from a
// measure records a failure of that measure's cell (its work on one model, data set, transformation
// value and trial), and continues with the others.
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
