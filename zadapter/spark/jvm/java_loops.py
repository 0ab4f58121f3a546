"""Loops that run within the JVM: from Python, each call takes a tenth of a millisecond.

Their bodies consist of Java method handles, because a Python function would be a callback.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

JavaObject = Any

_ITEM = "java.lang.Object"
_BOXED = {"int": "java.lang.Integer", "long": "java.lang.Long", "boolean": "java.lang.Boolean"}


class Loops:
    """Method handles of one JVM, and loops over them."""

    def __init__(self, jvm: JavaObject, gateway: Any) -> None:
        self._jvm = jvm
        self._gateway = gateway
        self._handles = jvm.java.lang.invoke.MethodHandles
        self._classes: dict[str, JavaObject] = {}
        self._methods: dict[tuple[str, ...], JavaObject] = {}

    def method(self, class_: str, name: str, *arguments: str) -> JavaObject:
        """Return the handle of a public method; it takes an instance of *class_* first."""
        key = class_, name, *arguments
        if key not in self._methods:
            found = self._reflect(class_, name, arguments)
            self._methods[key] = self._handles.publicLookup().unreflect(found)
        return self._methods[key]

    def chain(self, first: JavaObject, second: JavaObject) -> JavaObject:
        """Return a handle that passes the result of *first* to *second*."""
        types = self._jvm.java.lang.invoke.MethodType
        takes = types.methodType(second.type().returnType(), first.type().returnType())
        return self._handles.filterReturnValue(first, second.asType(takes))

    def bind(self, handle: JavaObject, at: int, *values: Any) -> JavaObject:
        """Return *handle* with fixed arguments from place *at* on."""
        return self._handles.insertArguments(handle, at, self._objects(values))

    def adding_to(self, items: JavaObject) -> JavaObject:
        """Return a handle that adds its argument to the collection *items*."""
        return self.method("java.util.Collection", "add", _ITEM).bindTo(items)

    def where(self, test: JavaObject, handle: JavaObject) -> JavaObject:
        """Return a handle that calls *handle* with an item if *test* holds for it."""
        types = self._jvm.java.lang.invoke.MethodType
        nothing = self.class_of("java.lang.Void").getField("TYPE").get(None)
        takes = types.methodType(nothing, test.type().parameterType(0))
        does = handle.asType(takes)
        return self._handles.guardWithTest(test, does, self._handles.empty(takes))

    def negate(self, test: JavaObject) -> JavaObject:
        """Return a handle of the opposite of *test*."""
        opposite = [self._constant(value, test) for value in (False, True)]
        return self._handles.guardWithTest(test, *opposite)

    def either(self, test: JavaObject, other: JavaObject) -> JavaObject:
        """Return a handle of whether one of two tests of the same items holds."""
        return self._handles.guardWithTest(test, self._constant(True, test), other)  # noqa: FBT003

    def _constant(self, value: bool, test: JavaObject) -> JavaObject:
        """Return a handle of a truth that takes what *test* takes."""
        truth = self.class_of("java.lang.Boolean").getField("TYPE").get(None)
        constant = self._handles.constant(truth, value)
        return self._handles.dropArguments(constant, 0, test.type().parameterArray())

    def consumer(self, handle: JavaObject) -> JavaObject:
        """Return a handle of one argument as a ``java.util.function.Consumer``."""
        return self._instance("Consumer", handle)

    def function(self, handle: JavaObject) -> JavaObject:
        """Return a handle of one argument as a ``java.util.function.Function``."""
        return self._instance("Function", handle)

    def for_each(self, iterator: JavaObject, handle: JavaObject) -> None:
        """Call *handle* with each item that an iterator has left.

        Py4j does not find default methods of interfaces, such as this one, in classes that are not
        public.
        """
        consumer = "java.util.function.Consumer"
        rest = self._reflect("java.util.Iterator", "forEachRemaining", [consumer])
        rest.invoke(iterator, self._objects([self.consumer(handle)]))

    def sort(self, items: JavaObject, key: JavaObject) -> None:
        """Sort a ``java.util.List`` by what the handle *key* returns for each item."""
        order = self._jvm.java.util.Comparator.comparing(self.function(key))
        self._jvm.java.util.Collections.sort(items, order)  # py4j's lists have a sort of their own

    def map_items(self, items: JavaObject, handle: JavaObject) -> JavaObject:
        """Return what *handle* returns for each item of a collection, as a ``java.util.List``."""
        results = self._jvm.java.util.ArrayList(items.size())
        items.forEach(self.consumer(self.chain(handle, self.adding_to(results))))
        return results

    def select_items(self, items: JavaObject, test: JavaObject) -> JavaObject:
        """Return the items of a collection for which *test* holds, as a ``java.util.List``."""
        found = self._jvm.java.util.ArrayList()
        items.forEach(self.consumer(self.where(test, self.adding_to(found))))
        return found

    def filter_iterator(self, items: JavaObject, test: JavaObject) -> JavaObject:
        """Return Hadoop's ``RemoteIterator`` of the items of another one for which *test* holds."""
        functional = self._jvm.org.apache.hadoop.util.functional
        holds = self._instance("FunctionRaisingIOE", test, "org.apache.hadoop.util.functional")
        return functional.RemoteIterators.filteringRemoteIterator(items, holds)

    def _instance(
        self, name: str, handle: JavaObject, package: str = "java.util.function"
    ) -> JavaObject:
        """Return a handle as an instance of an interface."""
        proxies = self._jvm.java.lang.invoke.MethodHandleProxies
        return proxies.asInterfaceInstance(self.class_of(f"{package}.{name}"), handle)

    def _objects(self, values: Sequence[Any]) -> JavaObject:
        objects = self._gateway.new_array(self._jvm.java.lang.Object, len(values))
        for number, value in enumerate(values):
            objects[number] = value
        return objects

    def _reflect(self, class_: str, name: str, arguments: Sequence[str]) -> JavaObject:
        types = self._gateway.new_array(self._jvm.java.lang.Class, len(arguments))
        for number, argument in enumerate(arguments):
            types[number] = self.class_of(argument)
        return self.class_of(class_).getMethod(name, types)

    def class_of(self, name: str) -> JavaObject:
        """Return a class by its name, also of the session's added packages, or a primitive type."""
        if name not in self._classes:
            self._classes[name] = self._find_class(name)
        return self._classes[name]

    def _find_class(self, name: str) -> JavaObject:
        boxed = _BOXED.get(name)
        if boxed is not None:
            return self.class_of(boxed).getField("TYPE").get(None)
        return self._jvm.java.lang.Class.forName(name, True, self._loader)  # noqa: FBT003

    @cached_property
    def _loader(self) -> JavaObject:
        return self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
