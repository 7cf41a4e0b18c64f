// Package dynlib loads shared libraries at run time, without cgo.
package dynlib

import (
	"cmp"
	"fmt"
	"os"

	"github.com/ebitengine/purego"
)

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

// Find opens the first of some libraries that can be opened and has all functions, and returns its
// name or path. library is what the libraries are called in errors. The keys of functions are
// names, and the values are arguments of Bind. The environment variable env may hold the path of
// the only library to try, or "none" to try none, which is an error. If no library fits, the error
// is that of the first one.
func Find(library, env string, names []string, functions map[string]any) (path string, err error) {
	switch named := os.Getenv(env); named {
	case "":
	case "none":
		return "", fmt.Errorf("%s is none", env)
	default:
		names = []string{named}
	}
	var problem error
	for _, name := range names {
		err := bindAll(library, name, functions)
		if err == nil {
			return name, nil
		}
		problem = cmp.Or(problem, err)
	}
	return "", problem
}

// bindAll opens a library and binds the functions.
func bindAll(library, path string, functions map[string]any) error {
	opened, err := Open(path)
	if err != nil {
		return err
	}
	for name, f := range functions {
		if err := opened.Bind(f, name); err != nil {
			return fmt.Errorf("%s is not %s: it lacks %s", path, library, name)
		}
	}
	return nil
}
