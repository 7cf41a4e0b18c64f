package engine

import (
	"fmt"
	"time"
)

// A TimeLimitError is the error of work that takes longer than its limit.
type TimeLimitError struct{ Limit time.Duration }

func (e *TimeLimitError) Error() string {
	return fmt.Sprintf("it was not ready within the time limit of %v", e.Limit)
}

// Within calls f and returns its results, or a *TimeLimitError if it takes longer than limit; 0: no
// limit. What cannot be stopped, f then continues in the background.
func Within[T any](limit time.Duration, f func() (T, error)) (T, error) {
	if limit <= 0 {
		return f()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		var none T
		return none, &TimeLimitError{limit}
	}
}
