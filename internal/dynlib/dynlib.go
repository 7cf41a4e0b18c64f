// Package dynlib loads shared libraries at run time, without cgo.
package dynlib

import "github.com/ebitengine/purego"

// A Library is an open shared library.
type Library struct{ handle uintptr }

// Open opens a library by its path, or by a name that the system's loader looks up.
func Open(name string) (Library, error) {
	handle, err := open(name)
	return Library{handle}, err
}

// Close unloads the library. None of its functions may be called afterwards.
func (l Library) Close() { closeHandle(l.handle) }

// Bind makes *f, a variable of a function type, call the function of the given name.
func (l Library) Bind(f any, name string) error {
	at, err := symbol(l.handle, name)
	if err == nil {
		purego.RegisterFunc(f, at)
	}
	return err
}
