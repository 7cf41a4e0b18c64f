//go:build !linux && !darwin

package filestate

import "io/fs"

func stateOf(info fs.FileInfo) State {
	return State{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}
