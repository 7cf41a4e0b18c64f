// Package filelock tells whether another process uses a file or a folder.
//
// A process that uses a file holds a shared lock on it. A process that wants to remove the file
// takes the exclusive lock. A lock ends when it is closed or when its process ends, even by a
// signal. On Windows the package takes no locks: a file counts as in use if it was modified within
// the last week.
package filelock
