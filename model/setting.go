package model

import (
	"errors"
	"strconv"
)

// A SettingError is an error of Open that one of the Options is the cause of, so that a caller who has them from a file can
// point at the line.
type SettingError struct {
	Path []string // as study files name it: {"layers", "2"}, {"preprocess", "mean"}, {"inputs", NAME}
	Err  error
}

func (e *SettingError) Error() string { return e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

// settingError says which option an error comes from; of no error it makes none.
func settingError(err error, path ...string) error {
	if err == nil {
		return nil
	}
	var key *KeyError
	if errors.As(err, &key) {
		path = append(path, key.Key)
	}
	return &SettingError{Path: path, Err: err}
}

// layerPath returns the path of a pattern among Options.Layers.
func layerPath(i int) []string { return []string{"layers", strconv.Itoa(i)} }
