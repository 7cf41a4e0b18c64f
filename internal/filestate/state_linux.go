package filestate

import (
	"io/fs"
	"syscall"
)

func stateOf(info fs.FileInfo) State {
	s := State{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.Inode = sys.Ctim.Nano(), sys.Ino
	}
	return s
}
