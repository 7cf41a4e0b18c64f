package model

import (
	"errors"
	"strconv"

	"github.com/noether-ml/noether/internal/model/preprocessing"
)

// A SettingError is an error of Open that is caused by one of the Options.
type SettingError struct {
	Path []string // as in study files: {"layers", "2"}, {"preprocess", "mean"}, {"inputs", NAME}
	Err  error
}

func (e *SettingError) Error() string { return e.Err.Error() }

func (e *SettingError) Unwrap() error { return e.Err }

// settingError adds an option's path to an error, and the key if it is a KeyError. It returns nil
// for nil.
func settingError(err error, path ...string) error {
	if err == nil {
		return nil
	}
	var key *preprocessing.KeyError
	if errors.As(err, &key) {
		path = append(path, key.Key)
	}
	return &SettingError{Path: path, Err: err}
}

func layerPath(i int) []string { return []string{"layers", strconv.Itoa(i)} }
