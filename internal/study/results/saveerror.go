package results

import "errors"

// A saveError is a failure to write into the run folder. Unlike the failure of a cell it ends the
// run.
type saveError struct{ error }

func (e *saveError) Unwrap() error { return e.error }

// SaveError returns err marked as a failure to write into the run folder, and nil for nil.
func SaveError(err error) error {
	if err == nil {
		return nil
	}
	return &saveError{err}
}

// IsSaveError reports whether an error is a failure to write into the run folder.
func IsSaveError(err error) bool {
	var failed *saveError
	return errors.As(err, &failed)
}
