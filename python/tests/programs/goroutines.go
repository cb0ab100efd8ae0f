// Transactions of a goroutine that another one ends, in another thread, or that it ends itself.
package main

import (
	"os"
	"runtime"
)

type node struct {
	next  *node
	value [4]uint64
}

//go:noinline
func txBegin() {}

//go:noinline
func txCommit() {}

var list *node

func commits(begun, done chan bool) {
	runtime.LockOSThread()
	for range begun {
		txCommit()
		done <- true
	}
}

func main() {
	runtime.LockOSThread()
	moves := os.Args[1] == "moves"
	begun, done := make(chan bool), make(chan bool)
	go commits(begun, done)
	for number := uint64(0); number < 20; number++ {
		txBegin()
		list = &node{list, [4]uint64{number}}
		if moves {
			begun <- true
			<-done
		} else {
			txCommit()
		}
	}
	if list.value[0] != 19 {
		os.Exit(1)
	}
}
