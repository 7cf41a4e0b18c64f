// Package filelock tells whether another process uses a file or a folder.
//
// A process that uses one holds a shared lock; one that wants to remove it takes the exclusive lock.
// A lock ends when it is closed or its process ends, by a signal too. On systems without such locks
// the age of a file decides.
package filelock
