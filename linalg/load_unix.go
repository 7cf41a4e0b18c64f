//go:build darwin || freebsd || linux || netbsd

package linalg

import "github.com/ebitengine/purego"

func load(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
