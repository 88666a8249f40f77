"""What relays change, in closed form: chats as arrays, presence, deliveries. Pure numpy, no Spark."""
